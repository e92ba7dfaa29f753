// The forms that a device keeps of a step's inputs (plugrad/sdk/forms.h): made once, and again after the input has changed.
#pragma once
#include <core/steps/trace.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace plugrad::steps {

// The memory of a form, and the state of its input when the form was made. Once made, it never changes: recordings of the
// whole process read it at once.
struct FormMemory {
  Ref<Storage> storage;
  bool is_made = false;
  uint32_t version = 0, exports = 0;  // as Storage's

  // Whether the input cannot have changed since the form was made.
  bool is_fresh(const Storage& input) const {
    return is_made && version == input.version && exports == input.exports.load();
  }
};

struct Form {
  Call maker;
  uint32_t reader;        // the call that reads the form
  uint32_t input, place;  // the memories of the input and of the form
  std::string key;        // of equal forms of one input
  std::shared_ptr<const FormMemory> memory;
};

// Returns the form as it is now: the recording's own, another recording's, or a new one by `make`, whose argument is the
// storage for it.
std::shared_ptr<const FormMemory> refreshed(const Form& form, const Storage& input,
                                            const std::function<void(Storage&)>& make);

// Lets calls of the trace read forms instead of inputs that are older than the step and that it never writes. bound: the
// memories that each replay binds. The memories of forms and new workspaces follow the trace's own memories.
std::vector<Form> take_forms(Trace& trace, const std::vector<uint32_t>& bound);

// Gives a call another kernel, for the call's present operands, with the workspace that it needs.
void set_kernel(Trace& trace, Call& call, const plugrad_kernel* kernel);
// The call as the plugin sees it; `views` receives pointers to its views.
plugrad_op op_of(const Call& call, std::vector<const plugrad_view*>& views);

}  // namespace plugrad::steps
