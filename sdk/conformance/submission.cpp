#include <sdk/conformance/submission.hpp>

#include <algorithm>

namespace plugrad::conformance {
namespace {

constexpr uint64_t kSlot = 4096;  // a multiple of every alignment in use

const plugrad_kernel* find(Session& session, uint32_t opcode, uint16_t layout) {
  return resolve(*session.plugin.table, session.device.handle(), question_for(opcode, PLUGRAD_F32), layout);
}

}  // namespace

plugrad_view vector_view(plugrad_buffer* buffer, int64_t count, uint8_t dtype) {
  plugrad_view view{};
  view.buffer = buffer;
  view.count = view.shape[0] = count;
  view.dtype = dtype;
  view.rank = 1;
  view.strides[0] = 1;
  return view;
}

plugrad_view number_view(double value) {
  plugrad_view view{};
  view.offset = __builtin_bit_cast(uint64_t, value);
  view.count = 1;
  view.dtype = PLUGRAD_F32;
  view.layout = PLUGRAD_IMMEDIATE;
  return view;
}

Vectors::Vectors(Session& session, int64_t count)
    : session_(session), count_(count), fill_(find(session, PLUGRAD_OP_FILL, PLUGRAD_IMMEDIATE)),
      add_(find(session, PLUGRAD_OP_ADD, PLUGRAD_IMMEDIATE)) {
  if (!fill_) lacking_ = "the plugin has no FILL of f32";
  else if (!add_) lacking_ = "the plugin has no ADD of f32 and an immediate";
}

Outcome Vectors::submit(Queue& queue, const plugrad_kernel* kernel, uint32_t opcode,
                        std::initializer_list<plugrad_view> views) const {
  std::vector<const plugrad_view*> pointers;
  for (const plugrad_view& view : views) pointers.push_back(&view);
  plugrad_op op{};
  op.struct_size = sizeof op;
  op.opcode = opcode;
  op.views = pointers.data();
  op.outputs = 1;
  op.inputs = static_cast<uint16_t>(views.size() - 1);
  if (kernel->workspace && kernel->workspace(kernel, &op)) throw Breach("FILL and ADD must not need a workspace");
  return session_.device.run(queue, kernel, op);
}

Outcome Vectors::fill(Queue& queue, plugrad_buffer* buffer, float value) const {
  return submit(queue, fill_, PLUGRAD_OP_FILL, {view(buffer), number_view(value)});
}

Outcome Vectors::add_one(Queue& queue, plugrad_buffer* buffer) const {
  return submit(queue, add_, PLUGRAD_OP_ADD, {view(buffer), view(buffer), number_view(1)});
}

bool Vectors::holds(Queue& queue, plugrad_buffer* buffer, float value) const {
  std::vector<float> got(count_, -1);
  session_.device.download(queue, got.data(), buffer, 0, bytes());
  return std::all_of(got.begin(), got.end(), [value](float x) { return x == value; });
}

BadGather::BadGather(Session& session, Queue& queue)
    : session_(session), kernel_(find(session, PLUGRAD_OP_GATHER, 0)), block_(session.device, 3 * kSlot) {
  const int64_t index = 1000;
  const float x[4] = {1, 2, 3, 4};
  session.device.upload(queue, block_.buffer(), kSlot, x, sizeof x);
  session.device.upload(queue, block_.buffer(), 2 * kSlot, &index, sizeof index);
}

plugrad_view BadGather::view(uint64_t offset, uint8_t dtype, int64_t count) const {
  plugrad_view view{};
  view.buffer = block_.buffer();
  view.offset = offset;
  view.count = view.shape[0] = count;
  view.dtype = dtype;
  view.rank = 1;
  view.strides[0] = 1;
  return view;
}

Outcome BadGather::submit(Queue& queue) const {
  const plugrad_view views[] = {view(0, PLUGRAD_F32, 1), view(kSlot, PLUGRAD_F32, 4), view(2 * kSlot, PLUGRAD_I64, 1)};
  const plugrad_view* pointers[] = {&views[0], &views[1], &views[2]};
  const plugrad_axis axis{sizeof axis, 0};
  plugrad_op op{};
  op.struct_size = sizeof op;
  op.opcode = PLUGRAD_OP_GATHER;
  op.views = pointers;
  op.attributes = &axis;
  op.outputs = 1;
  op.inputs = 2;
  if (kernel_->workspace && kernel_->workspace(kernel_, &op))
    throw Breach("a GATHER of one element must not need a workspace");
  return session_.device.run(queue, kernel_, op);
}

const plugrad_lists* offered_lists(const Session& session) {
  const plugrad_backend& table = *session.plugin.table;
  return table.get_extension ? static_cast<const plugrad_lists*>(table.get_extension(PLUGRAD_LISTS)) : nullptr;
}

bool is_whole(const plugrad_lists& lists) {
  return lists.struct_size >= sizeof lists && lists.make && lists.run && lists.drop;
}

}  // namespace plugrad::conformance
