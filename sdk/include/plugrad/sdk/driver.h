// The extension "plugrad.driver/0" of a plugin: what its driver does to the process. C11 and C++20.
//
// A plugin leaves the process as it is, and the host undoes and reports changes. Some drivers install signal handlers when
// they are loaded, such as drivers that contain a compiler. A plugin that says so here causes no warning: the host puts its
// own handlers back in silence.
//
// Getting it  backend->get_extension(PLUGRAD_DRIVER) returns a plugrad_driver, or null. The plugin owns it; it is constant
//             and lives as long as the process. The host asks after the entry has returned the table.
// Growth      struct_size comes first and fields are appended only: a field beyond struct_size does not exist.
#pragma once
#include <plugrad/sdk/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGRAD_DRIVER "plugrad.driver/0"

enum {
  PLUGRAD_DRIVER_SIGNALS = 1  // the driver installs signal handlers while the file is loaded, or in count or open
};

typedef struct plugrad_driver {
  uint32_t struct_size;
  uint32_t brings;  // PLUGRAD_DRIVER_SIGNALS, or 0
} plugrad_driver;

#ifdef __cplusplus
}  // extern "C"
#endif
