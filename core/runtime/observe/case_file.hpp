// A call of a kernel in a file for plugrad-conform --replay.
#pragma once
#include <plugrad/sdk/abi.h>

#include <cstdint>
#include <string>

namespace plugrad {

// The text of a case: the op, its flags and attributes, and for each operand its dtype, shape, strides and values. Numbers
// are hexadecimal, as they are in memory.
class CaseFile {
 public:
  CaseFile(const char* op, uint32_t flags, const void* attributes);
  // Adds the next operand, outputs first. `values` is a view of the same shape in host memory, or null if the op does not
  // read the operand or if it is an immediate.
  void add(const plugrad_view& view, const plugrad_view* values);
  // Records that the first output is this input.
  void set_in_place(int input);
  // Writes the file to the current directory. Returns its name; logs a warning and returns "" if it could not be written.
  std::string write() const;

 private:
  std::string op_, text_;
};

// "f32 (2, 3)", with the strides of a strided operand; "f32 number" for an immediate.
std::string text_of_operand(const plugrad_view& view);

}  // namespace plugrad
