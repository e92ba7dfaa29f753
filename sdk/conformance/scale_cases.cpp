// Sizes at which counters, grids and indices end: 2^16 batches, 2^24 elements, 2^31 elements between two.
#include <sdk/conformance/op_rows.hpp>
#include <sdk/conformance/running.hpp>
#include <sdk/conformance/sanitizer.hpp>
#include <sdk/conformance/submission.hpp>
#include <sdk/conformance/trial.hpp>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>

namespace plugrad::conformance {
namespace {

// --- More than 65,535 batches: the limit of a grid's second and third extent on many devices.

constexpr int64_t kBatches = 70000;

// The number of batches of a problem: the extent of its results' first axis, if the extent occurs only as a first extent.
// All operands with this first extent then have the batches in common. 0 for other problems.
int64_t batches_of(const Problem& problem) {
  const Shape& first = problem.outputs[0].shape();
  if (first.size() < 2 || first[0] < 2) return 0;
  for (const std::vector<Array>* arrays : {&problem.outputs, &problem.inputs})
    for (const Array& array : *arrays)
      for (size_t axis = 1; axis < array.shape().size(); ++axis)
        if (array.shape()[axis] == first[0]) return 0;
  return first[0];
}

Array repeated(const Array& array, int64_t batches, int64_t times) {
  if (array.shape().empty() || array.shape()[0] != batches) return array;
  Shape shape = array.shape();
  shape[0] *= times;
  Array all(array.dtype(), shape);
  for (int64_t i = 0; i < times; ++i) std::memcpy(all.element(i * array.count()), array.element(0), array.bytes().size());
  return all;
}

// The problem's batches, again and again.
Problem with_many_batches(const Problem& problem) {
  const int64_t batches = std::max<int64_t>(batches_of(problem), 1), times = kBatches / batches + 1;
  Problem many;
  for (const Array& array : problem.outputs) many.outputs.push_back(repeated(array, batches, times));
  for (const Array& array : problem.inputs) many.inputs.push_back(repeated(array, batches, times));
  many.attributes = problem.attributes;
  return many;
}

int64_t elements_of(const Problem& problem) {
  int64_t count = 0;
  for (const std::vector<Array>* arrays : {&problem.outputs, &problem.inputs})
    for (const Array& array : *arrays) count += array.count();
  return count;
}

// The smallest problem with batches of each rank.
std::vector<Problem> batched_problems(const Question& question, Random& random) {
  std::vector<Problem> all = row_of(question.op->opcode).problems(question, random);
  std::erase_if(all, [](const Problem& problem) { return problem.large || !batches_of(problem); });
  const auto rank = [](const Problem& problem) { return problem.outputs[0].shape().size(); };
  std::ranges::stable_sort(all, [&](const Problem& a, const Problem& b) {
    return std::pair(rank(a), elements_of(a)) < std::pair(rank(b), elements_of(b));
  });
  const auto again = std::ranges::unique(all, {}, rank);
  all.erase(again.begin(), again.end());
  std::erase_if(all, [](const Problem& problem) { return elements_of(problem) > 40 * batches_of(problem); });
  return all;
}

void check_many_batches(Session& session, Tally& tally, const Question& question, Queue& queue) {
  const OpRow& row = row_of(question.op->opcode);
  const plugrad_kernel* kernel = resolve(*session.plugin.table, session.device.handle(), question, 0);
  if (!kernel) return;
  Random random(session.settings.seed);
  Arrangement dense;
  dense.operands.resize(question.dtypes.size());
  for (const Problem& problem : batched_problems(question, random)) {
    const std::string title = text_of(question) + " [" + std::to_string(kBatches) + " batches]";
    note_running("scale.batches " + text_of(question) + " " + text_of(problem.outputs[0].shape()));
    try {
      Batch batch(session.device, queue, row, question, kernel);
      batch.add(laid_out(row, question, with_many_batches(problem), dense, session.device.info().alignment));
      const Outcome outcome = batch.run();
      if (!outcome.ok()) tally.fail(title + ": sync returned " + outcome.text());
      batch.verify(tally, title);
    } catch (const NoRoom&) {
      tally.decline(1);
    } catch (const Breach& breach) {
      tally.fail(title + ": " + breach.what());
    }
  }
}

void check_batches(Session& session, Tally& tally) {
  Queue queue = session.device.make_queue();
  for (const OpInfo& op : kOps) {
    // One kernel serves all elementwise ops. An op with immediates alone has no batches.
    if ((op.shape == OpShape::elementwise && op.opcode != PLUGRAD_OP_ADD) || row_of(op.opcode).only_immediates()) continue;
    const auto served = std::ranges::find_if(kDTypes, [&](const DTypeInfo& info) { return op.is_for(info.dtype); });
    if (served == std::end(kDTypes) || op.opcode == PLUGRAD_OP_CAST) continue;
    const Question question = question_for(op.opcode, op.is_for(PLUGRAD_F32) ? uint8_t{PLUGRAD_F32} : served->dtype);
    if (claimed(session, question)) check_many_batches(session, tally, question, queue);
  }
  if (!tally.cases()) tally.skip("the plugin has no op with batches");
}

// --- More than 2^24 elements, which an index in f32 cannot tell apart.

constexpr int64_t kMany = (int64_t{1} << 24) + 4099;

plugrad_view number_of(uint8_t dtype, double value) {
  plugrad_view view = number_view(value);
  view.dtype = dtype;
  const auto whole = static_cast<int64_t>(value);
  if (!is_floating(dtype)) std::memcpy(&view.offset, &whole, sizeof whole);
  return view;
}

class Many {
 public:
  Many(Session& session, Tally& tally) : session_(session), tally_(tally), queue_(session.device.make_queue()) {}

  // Runs an op with these operands, of which the first is the output. Returns whether it ran.
  bool run(uint32_t opcode, uint8_t dtype, std::initializer_list<plugrad_view> operands, const void* attributes) {
    uint16_t layout = 0;
    std::vector<const plugrad_view*> pointers;
    for (const plugrad_view& view : operands) {
      layout |= view.layout;
      pointers.push_back(&view);
    }
    const Question question = question_for(opcode, dtype);
    const plugrad_kernel* kernel = resolve(*session_.plugin.table, session_.device.handle(), question, layout);
    if (!kernel) return false;
    note_running("scale.elements " + text_of(question));
    plugrad_op op{};
    op.struct_size = sizeof op;
    op.opcode = opcode;
    op.views = pointers.data();
    op.attributes = attributes;
    op.outputs = 1;
    op.inputs = static_cast<uint16_t>(operands.size() - 1);
    if (kernel->workspace && kernel->workspace(kernel, &op)) return false;
    const Outcome outcome = session_.device.run(queue_, kernel, op);
    if (outcome.status == PLUGRAD_UNSUPPORTED || outcome.status == PLUGRAD_OUT_OF_MEMORY) return false;
    return tally_.check(outcome.ok() && session_.device.sync(queue_).ok(),
                        text_of(question) + " of " + std::to_string(kMany) + " elements returned " + outcome.text());
  }

  // Compares the elements of a buffer with value(i).
  template <class T, class Value> void expect(const char* what, const Block& block, int64_t count, Value value) {
    std::vector<T> found(static_cast<size_t>(count));
    session_.device.download(queue_, found.data(), block.buffer(), 0, found.size() * sizeof(T));
    int64_t wrong = 0, first = -1;
    for (int64_t i = count - 1; i >= 0; --i)
      if (found[static_cast<size_t>(i)] != value(i)) ++wrong, first = i;
    tally_.check(!wrong, std::string(what) + " of " + std::to_string(kMany) + " elements: " + std::to_string(wrong) +
                             " are wrong, first element " + std::to_string(first) +
                             "; indices need more than 24 bits, so an index in f32 does not do");
  }

  Queue& queue() { return queue_; }

 private:
  Session& session_;
  Tally& tally_;
  Queue queue_;
};

float pattern(int64_t i) { return static_cast<float>(i % 8191); }

void check_elementwise(Many& many, Block& block) {
  const plugrad_view x = vector_view(block.buffer(), kMany);
  if (many.run(PLUGRAD_OP_FILL, PLUGRAD_F32, {x, number_view(3)}, nullptr))
    many.expect<float>("FILL", block, kMany, [](int64_t) { return 3.0f; });
  const plugrad_view whole = vector_view(block.buffer(), kMany, PLUGRAD_I32);
  if (many.run(PLUGRAD_OP_IOTA, PLUGRAD_I32, {whole, number_of(PLUGRAD_I32, 5), number_of(PLUGRAD_I32, 1)}, nullptr))
    many.expect<int32_t>("IOTA", block, kMany, [](int64_t i) { return static_cast<int32_t>(i + 5); });
}

void check_sums(Session& session, Many& many, Block& block) {
  std::vector<float> numbers(static_cast<size_t>(kMany));
  for (int64_t i = 0; i < kMany; ++i) numbers[static_cast<size_t>(i)] = pattern(i);
  const plugrad_view x = vector_view(block.buffer(), kMany);
  session.device.upload(many.queue(), block.buffer(), 0, numbers.data(), block.bytes());
  if (many.run(PLUGRAD_OP_ADD, PLUGRAD_F32, {x, x, number_view(1)}, nullptr))
    many.expect<float>("ADD", block, kMany, [](int64_t i) { return pattern(i) + 1; });
  session.device.upload(many.queue(), block.buffer(), 0, numbers.data(), block.bytes());
  // Elements near the end and around 2^24, by their indices.
  const std::vector<int64_t> indices = {kMany - 1, kMany - 2, (1 << 24) + 1, (1 << 24) - 1, 1, kMany - 4098};
  const auto count = static_cast<int64_t>(indices.size());
  const Block places(session.device, indices.size() * sizeof(int64_t)),
      found(session.device, indices.size() * sizeof(float));
  session.device.upload(many.queue(), places.buffer(), 0, indices.data(), places.bytes());
  const plugrad_axis axis{sizeof axis, 0};
  const plugrad_view to = vector_view(found.buffer(), count), from = vector_view(places.buffer(), count, PLUGRAD_I64);
  if (many.run(PLUGRAD_OP_GATHER, PLUGRAD_F32, {to, x, from}, &axis))
    many.expect<float>("GATHER", found, count, [&](int64_t i) { return pattern(indices[static_cast<size_t>(i)]); });
}

void check_elements(Session& session, Tally& tally) {
  Many many(session, tally);
  try {
    Block block(session.device, static_cast<uint64_t>(kMany) * sizeof(float));
    check_elementwise(many, block);
    check_sums(session, many, block);
  } catch (const NoRoom& lack) {
    return tally.skip(lack.what());
  }
  if (!tally.cases()) tally.skip("the plugin has none of the ops for this case");
}

// --- WIDE_INDEX in memory of the device: bytes 2^30 apart. memory.wide has the case for memory of the host.

constexpr uint64_t kStep = uint64_t{1} << 30;

plugrad_view wide_view(plugrad_buffer* buffer) {
  plugrad_view view = vector_view(buffer, 3, PLUGRAD_U8);
  view.layout = PLUGRAD_STRIDED | PLUGRAD_WIDE_INDEX;
  view.strides[0] = static_cast<int64_t>(kStep);
  return view;
}

// The memory that the system could give to programs now; a device may be a part of the host.
uint64_t free_memory_of_host() {
  std::ifstream lines("/proc/meminfo");
  std::string name;
  for (uint64_t kilobytes = 0; lines >> name >> kilobytes; lines.ignore(100, '\n'))
    if (name == "MemAvailable:") return kilobytes * 1024;
  return UINT64_MAX;
}

plugrad_buffer* wide_memory(Session& session, Tally& tally) {
  const plugrad_backend& table = *session.plugin.table;
  uint64_t available = UINT64_MAX, total = 0;
  if (!table.alloc || kSanitized) {
    tally.skip(table.alloc ? "a sanitizer has no room for memory of 2 GiB" : "the host allocates this device's memory");
    return nullptr;
  }
  if (table.memory_info && table.memory_info(session.device.handle(), &available, &total) == PLUGRAD_OK &&
      available < 3 * kStep) {
    tally.skip("the device has less than 3 GiB of free memory");
    return nullptr;
  }
  if (free_memory_of_host() < 6 * kStep) {
    tally.skip("the host has less than 6 GiB of free memory");
    return nullptr;
  }
  plugrad_buffer* buffer = nullptr;
  begin_call();
  if (table.alloc(session.device.handle(), 2 * kStep + 1, &buffer) == PLUGRAD_OK) return buffer;
  tally.skip("the device has no buffer of 2 GiB");
  return nullptr;
}

void check_wide_on_device(Session& session, Tally& tally) {
  const auto release = [&](plugrad_buffer* owned) { session.device.free(owned); };
  const std::unique_ptr<plugrad_buffer, decltype(release)> owner(wide_memory(session, tally), release);
  plugrad_buffer* const buffer = owner.get();
  if (!buffer) return;
  Many many(session, tally);
  const Block block(session.device, 3);
  const unsigned char sent[3] = {11, 22, 33};
  const plugrad_view wide = wide_view(buffer), dense = vector_view(block.buffer(), 3, PLUGRAD_U8);
  for (uint64_t i = 0; i < 3; ++i) session.device.upload(many.queue(), buffer, i * kStep, &sent[i], 1);
  if (many.run(PLUGRAD_OP_COPY, PLUGRAD_U8, {dense, wide}, nullptr))
    many.expect<unsigned char>("COPY from bytes 2^30 apart", block, 3, [&](int64_t i) { return sent[i]; });
  const unsigned char back[3] = {44, 55, 66};
  session.device.upload(many.queue(), block.buffer(), 0, back, 3);
  if (many.run(PLUGRAD_OP_COPY, PLUGRAD_U8, {wide, dense}, nullptr))
    for (uint64_t i = 0; i < 3; ++i) {
      unsigned char found = 0;
      session.device.download(many.queue(), &found, buffer, i * kStep, 1);
      tally.check(found == back[i], "COPY to bytes 2^30 apart wrote " + std::to_string(found) + " at " +
                                        std::to_string(i * kStep) + ": decline WIDE_INDEX or use 64-bit offsets");
    }
  if (!tally.cases()) tally.skip("no COPY of u8 serves WIDE_INDEX");
}

}  // namespace

std::vector<Case> scale_cases() {
  return {{"scale.batches", check_batches}, {"scale.elements", check_elements}, {"scale.wide", check_wide_on_device}};
}

}  // namespace plugrad::conformance
