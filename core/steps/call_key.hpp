// The keys of recordings: calls with equal keys share a recording.
#pragma once
#include <core/tensor/impl.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace plugrad::steps {

enum class Alignments { told, left_out };

// Writes the forms of the arguments, the modes and the constants as a key. Reuses the text's memory.
void write_key(std::string& text, const std::vector<Tensor>& arguments, std::string_view constants,
               Alignments alignments = Alignments::told);

// The forms of a call's arguments, without their memory.
class CallForm {
 public:
  explicit CallForm(const std::vector<Tensor>& arguments);
  // Describes the first difference of `now` from this call: "argument 0 has the shape (3, 4), was (2, 4)". Empty if no form
  // of an argument differs.
  std::string difference(const CallForm& now) const;

 private:
  struct Argument {
    plugrad_view view;
    const DeviceState* device;
    const Node* node;  // of a requested gradient; only compared
  };
  std::vector<Argument> arguments_;
};

}  // namespace plugrad::steps
