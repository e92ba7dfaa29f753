#include <plugrad/runtime/error.hpp>

namespace plugrad {

Error::~Error() = default;  // its typeinfo lives here, so that every library catches the same

}  // namespace plugrad
