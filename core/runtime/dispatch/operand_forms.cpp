#include <core/runtime/dispatch/operand_forms.hpp>

#include <core/runtime/dispatch/op_table.hpp>
#include <core/runtime/plugins/foreign.hpp>

namespace plugrad {

const plugrad_forms* forms_of(const DeviceState& device) {
  const auto* found = static_cast<const plugrad_forms*>(extension_of(device.table, PLUGRAD_FORMS));
  if (found && found->struct_size < sizeof *found)
    throw_breach(device.name, "the table of '" PLUGRAD_FORMS "' is incomplete");
  return found;
}

std::optional<plugrad_form> form_of(const DeviceState& device, const plugrad_kernel& kernel, const plugrad_op& op,
                                    uint32_t input) {
  const plugrad_forms* const offered = forms_of(device);
  if (!offered || !offered->find) return {};
  plugrad_form form{};
  form.struct_size = sizeof form;
  const auto find = [&] { return offered->find(device.handle, &kernel, &op, input, &form); };
  if (!contained_value(device.name, "the form of an operand", find)) return {};
  const auto is_whole = [](const plugrad_kernel* each) { return each && each->struct_size >= sizeof *each && each->run; };
  if (!form.bytes || !is_whole(form.maker) || !is_whole(form.reader))
    throw_breach(device.name, "the form of an operand of " + op_label(op.opcode) + " is incomplete");
  return form;
}

}  // namespace plugrad
