#include <plugrad/tensor/dtype.hpp>

#include <core/runtime/observe/observer.hpp>
#include <plugrad/runtime/error.hpp>

#include <ostream>

namespace plugrad {

const char* dtype_name(DType dtype) { return dtype_label_of(static_cast<uint8_t>(dtype)); }

DType dtype_from_name(const std::string& name) {
  std::string known;
  for (const DType each : kEveryDType) {
    if (name == dtype_name(each)) return each;
    known += (known.empty() ? "" : ", ") + std::string(dtype_name(each));
  }
  throw Error(Code::invalid, "[dtype] no dtype is named '" + name + "': expected one of " + known);
}

void note_number_read() noexcept { observe::lifted.were_read = true; }

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << dtype_name(dtype); }

}  // namespace plugrad
