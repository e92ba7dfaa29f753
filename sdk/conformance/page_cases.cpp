// Operands in memory mapped by this program: beside inaccessible pages, and further apart than 2^31 elements.
// Only for devices without an allocator of their own: the host allocates.
#include <sdk/conformance/op_rows.hpp>
#include <sdk/conformance/running.hpp>
#include <sdk/conformance/sanitizer.hpp>
#include <sdk/conformance/session.hpp>
#include <sdk/conformance/trial.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>

namespace plugrad::conformance {
namespace {

// Pages between two inaccessible pages. They take memory only where they are written.
class Pages {
 public:
  explicit Pages(uint64_t bytes) : bytes_((bytes + page() - 1) / page() * page()) {
    void* all = mmap(nullptr, bytes_ + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return;
    base_ = static_cast<char*>(all) + page();
    if (mprotect(base_, bytes_, PROT_READ | PROT_WRITE)) std::abort();
  }
  ~Pages() {
    if (base_) munmap(base_ - page(), bytes_ + 2 * page());
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  static uint64_t page() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }
  char* base() const { return base_; }  // null if the system has no room
  uint64_t bytes() const { return bytes_; }

 private:
  char* base_ = nullptr;
  uint64_t bytes_;
};

bool host_allocates(const Session& session, Tally& tally) {
  const bool fits = !session.plugin.table->alloc && session.device.info().alignment <= Pages::page();
  if (!fits) tally.skip("the plugin allocates this device's memory");
  return fits;
}

plugrad_view view_at(const Array& array, Form form, char* buffer, uint64_t offset, bool unaligned) {
  plugrad_view view{};
  view.buffer = reinterpret_cast<plugrad_buffer*>(buffer);
  view.offset = offset;
  view.count = array.count();
  view.dtype = array.dtype();
  view.rank = static_cast<uint8_t>(array.shape().size());
  const Shape strides = strides_of(array.shape(), form);
  view.layout = layout_of(array.shape(), strides, unaligned);
  std::ranges::copy(array.shape(), view.shape);
  std::ranges::copy(strides, view.strides);
  return view;
}

// The place of an operand in its pages.
enum class Edge { begin, end };

// A problem with each operand and the workspace at an edge of pages of their own.
class AtTheEdge {
 public:
  AtTheEdge(const Problem& problem, Form form, Edge edge, uint64_t alignment) : problem_(problem), form_(form) {
    for (const std::vector<Array>* arrays : {&problem.outputs, &problem.inputs})
      for (const Array& array : *arrays) add(array, edge, alignment);
    for (const plugrad_view& view : views_) pointers_.push_back(&view);
  }
  uint16_t layout() const {
    uint16_t all = 0;
    for (const plugrad_view& view : views_) all |= view.layout;
    return all;
  }
  Outcome run(const Session& session, Queue& queue, const Question& question, const plugrad_kernel* kernel) {
    plugrad_op op{};
    op.struct_size = sizeof op;
    op.opcode = question.op->opcode;
    op.views = pointers_.data();
    op.attributes = problem_.attributes.empty() ? nullptr : problem_.attributes.data();
    op.outputs = question.op->outputs;
    op.inputs = question.op->inputs;
    op.flags = question.flags;
    if (const uint64_t bytes = kernel->workspace ? kernel->workspace(kernel, &op) : 0) {
      const uint64_t alignment = session.device.info().alignment;
      const Pages& pages = pages_.emplace_back(bytes);
      op.workspace = reinterpret_cast<plugrad_buffer*>(pages.base());
      op.workspace_offset = (pages.bytes() - bytes) / alignment * alignment;
      op.workspace_bytes = bytes;
    }
    const Outcome outcome = session.device.run(queue, kernel, op);
    session.device.sync(queue);
    return outcome;
  }

 private:
  void add(const Array& array, Edge edge, uint64_t alignment) {
    const Pages& pages = pages_.emplace_back(array.bytes().size());
    const uint64_t offset = edge == Edge::begin ? 0 : pages.bytes() - array.bytes().size();
    std::memcpy(pages.base() + offset, array.bytes().data(), array.bytes().size());
    views_.push_back(view_at(array, form_, pages.base(), offset, offset % alignment != 0));
  }

  const Problem& problem_;
  Form form_;
  std::deque<Pages> pages_;
  std::deque<plugrad_view> views_;
  std::vector<const plugrad_view*> pointers_;
};

struct EdgeCase {
  const Problem& problem;
  Form form;
  Edge edge;
};
void check_edge(Session& session, Tally& tally, const Question& question, Queue& queue, const EdgeCase& one) {
  AtTheEdge trial(one.problem, one.form, one.edge, session.device.info().alignment);
  const plugrad_kernel* kernel = resolve(session.device.table(), session.device.handle(), question, trial.layout());
  if (!kernel) return;
  note_running("memory.edges " + text_of(question) +
               (one.edge == Edge::begin ? " before its operands" : " past its operands"));
  const Outcome outcome = trial.run(session, queue, question, kernel);
  const bool declined = outcome.status == PLUGRAD_UNSUPPORTED || outcome.status == PLUGRAD_OUT_OF_MEMORY;
  tally.check(outcome.ok() || declined, text_of(question) + ": run returned " + outcome.text());
}

void check_edges_of(Session& session, Tally& tally, const Question& question, Queue& queue) {
  const OpRow& row = row_of(question.op->opcode);
  Random random(session.settings.seed);
  for (const Problem& problem : row.problems(question, random)) {
    if (problem.large) continue;
    for (const Form form : {Form::dense, Form::channels_last}) {
      if (form == Form::channels_last && !is_on_images(*question.op)) continue;
      for (const Edge edge : {Edge::begin, Edge::end}) check_edge(session, tally, question, queue, {problem, form, edge});
    }
  }
}

// A kernel that reads or writes beside its operands touches an inaccessible page and crashes.
void check_edges(Session& session, Tally& tally) {
  if (!host_allocates(session, tally)) return;
  Queue queue = session.device.make_queue();
  for (const OpInfo& op : kOps)
    for (const uint8_t dtype : {PLUGRAD_F32, PLUGRAD_F64, PLUGRAD_BF16, PLUGRAD_I64, PLUGRAD_BOOL})
      if (op.is_for(dtype) && !row_of(op.opcode).only_immediates())
        if (const Question question = question_for(op.opcode, dtype); claimed(session, question))
          check_edges_of(session, tally, question, queue);
}

// Two elements, 2^31 elements apart. Only the two pages with the elements take memory.
class Wide {
 public:
  Wide() : pages_(((uint64_t{1} << 31) + 1) * sizeof(float)) {}
  bool is_there() const { return pages_.base(); }
  float& operator[](int i) const { return reinterpret_cast<float*>(pages_.base())[i * (int64_t{1} << 31)]; }
  plugrad_view view() const {
    plugrad_view view{};
    view.buffer = reinterpret_cast<plugrad_buffer*>(pages_.base());
    view.count = 2;
    view.dtype = PLUGRAD_F32;
    view.rank = 1;
    view.layout = PLUGRAD_STRIDED | PLUGRAD_WIDE_INDEX;
    view.shape[0] = 2;
    view.strides[0] = int64_t{1} << 31;
    return view;
  }

 private:
  const Pages pages_;
};

struct WideCase {
  uint32_t opcode;
  int inputs;
  float first, second;  // the results for (1.5, -2.25) and (4, 8)
};
constexpr WideCase kWideCases[] = {{PLUGRAD_OP_COPY, 1, 1.5f, -2.25f},  {PLUGRAD_OP_NEG, 1, -1.5f, 2.25f},
                                   {PLUGRAD_OP_ABS, 1, 1.5f, 2.25f},    {PLUGRAD_OP_ADD, 2, 5.5f, 5.75f},
                                   {PLUGRAD_OP_MUL, 2, 6, -18},         {PLUGRAD_OP_MAXIMUM, 2, 4, 8},
                                   {PLUGRAD_OP_SUM, 1, -0.75f, -0.75f}, {PLUGRAD_OP_MAX, 1, 1.5f, 1.5f}};

void check_wide(Session& session, Tally& tally) {
  if (!host_allocates(session, tally)) return;
  if (kSanitized) return tally.skip("a sanitizer has no room for memory of 8 GiB");
  const Wide out, left, right;
  if (!out.is_there() || !left.is_there() || !right.is_there())
    return tally.skip("the system has no room for views of 8 GiB");
  Queue queue = session.device.make_queue();
  for (const WideCase& c : kWideCases) {
    const Question question = question_for(c.opcode, PLUGRAD_F32);
    const plugrad_kernel* kernel =
        resolve(session.device.table(), session.device.handle(), question, PLUGRAD_STRIDED | PLUGRAD_WIDE_INDEX);
    if (!kernel || kernel->workspace) continue;
    note_running("memory.wide " + text_of(question));
    out[0] = out[1] = 99, left[0] = 1.5f, left[1] = -2.25f, right[0] = 4, right[1] = 8;
    plugrad_view to = out.view();
    const plugrad_view from = left.view(), other = right.view();
    const bool reduces = question.op->shape == OpShape::reduction;
    if (reduces) to.count = to.shape[0] = 1;
    const plugrad_view* views[] = {&to, &from, &other};
    plugrad_op op{};
    op.struct_size = sizeof op;
    op.opcode = c.opcode;
    op.views = views;
    op.outputs = 1;
    op.inputs = static_cast<uint16_t>(c.inputs);
    const Outcome outcome = session.device.run(queue, kernel, op);
    session.device.sync(queue);
    const bool right_values = out[0] == c.first && out[1] == (reduces ? 99 : c.second);
    tally.check(outcome.ok() && right_values, text_of(question) + " of elements 2^31 apart: run returned " + outcome.text() +
                                                  ", results " + std::to_string(out[0]) + ", " + std::to_string(out[1]) +
                                                  "; decline WIDE_INDEX or use 64-bit offsets");
  }
  if (!tally.cases()) tally.skip("no kernel serves WIDE_INDEX");
}

}  // namespace

std::vector<Case> page_cases() { return {{"memory.edges", check_edges}, {"memory.wide", check_wide}}; }

}  // namespace plugrad::conformance
