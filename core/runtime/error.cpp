#include <plugrad/runtime/error.hpp>

namespace plugrad {

Error::~Error() = default;  // anchors the type info here, so that all libraries catch the same type

}  // namespace plugrad
