#include <plugrad/tensor/dtype.hpp>

#include <plugrad/runtime/error.hpp>

#include <ostream>

namespace plugrad {

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::i64: return "i64";
    case DType::boolean: return "bool";
  }
  return "unknown dtype";
}

DType dtype_from_name(const std::string& name) {
  for (DType each : {DType::f32, DType::f64, DType::i64, DType::boolean})
    if (name == dtype_name(each)) return each;
  throw Error(Code::invalid, "[dtype] no dtype '" + name + "': f32, f64, i64 or bool expected");
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << dtype_name(dtype); }

}  // namespace plugrad
