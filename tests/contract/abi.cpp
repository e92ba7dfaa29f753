// Includes only the C headers, in C++.
#include <plugrad/sdk/abi.h>
#include <plugrad/sdk/communicator.h>
#include <plugrad/sdk/forms.h>
#include <plugrad/sdk/list.h>
#include <plugrad/sdk/native.h>

static_assert(sizeof(plugrad_view) == 160);
static_assert(PLUGRAD_OP_FILL == 1 && PLUGRAD_OP_ADAM_STEP == 97);

uint64_t hash_of_revision() { return plugrad_layouts[PLUGRAD_REVISION]; }
