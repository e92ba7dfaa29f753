// Numbers as text, the same under every locale.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <string>

namespace plugrad {

// The shortest decimal that reads back as the same number: "0.1", "1e-08", "inf".
PLUGRAD_API std::string number_text(double value);
// With this many digits after the point, as printf's %.*f: "0.10".
PLUGRAD_API std::string fixed_text(double value, int digits);

}  // namespace plugrad
