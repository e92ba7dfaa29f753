// Host memory for tensors that an engine cannot reach; waits; collectives as calls of a compiled step.
#include <core/distributed/collective_start.hpp>

#include <core/runtime/observe/observer.hpp>
#include <core/runtime/streams/native.hpp>
#include <core/tensor/host_task.hpp>
#include <core/tensor/impl.hpp>
#include <plugrad/ops/transfer.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

namespace plugrad::distributed {
namespace {
constexpr std::chrono::microseconds kSpin{200};  // of a thread that waits, before it sleeps

// The elements of a tensor, row-major, in host memory: the tensor's own, or a copy.
class HostElements {
 public:
  // apart: another tensor that the engine uses at the same time, whose memory must not be x's.
  HostElements(const Tensor& x, bool reads, bool writes, const Tensor& apart = {}) : tensor_(x), writes_(writes) {
    const DeviceState& device = device_of(x);
    const bool overlaps = apart.defined() && storage_of(x) == storage_of(apart);
    is_direct_ = device.host_memory() && !device.compute && is_dense(view_of(x)) && !overlaps;
    if (is_direct_) {
      if (writes) raise_version(tensor_);
      memory_ = reinterpret_cast<char*>(view_of(x).buffer) + view_of(x).offset;
      return;
    }
    copy_.resize(static_cast<size_t>(x.count()) * element_size(dtype_of(x)));
    if (reads) x.copy_to_host(copy_.data());
    memory_ = copy_.data();
  }
  HostElements(const HostElements&) = delete;
  char* data() const { return memory_; }
  // Stores results in the tensor.
  void finish() {
    if (!writes_) return;
    if (is_direct_) raise_version(tensor_);  // once more: a step may have read the elements meanwhile
    else if (!copy_.empty()) copy_from_host(tensor_, copy_.data());
  }

 private:
  Tensor tensor_;
  bool writes_, is_direct_;
  char* memory_ = nullptr;
  std::vector<char> copy_;
};

using Elements = std::shared_ptr<HostElements>;

// --- Device memory that the engine takes.

bool is_reducible(uint8_t dtype) {
  constexpr uint8_t kDTypes[] = {PLUGRAD_F16, PLUGRAD_BF16, PLUGRAD_F32, PLUGRAD_F64,
                                 PLUGRAD_I8,  PLUGRAD_U8,   PLUGRAD_I32, PLUGRAD_I64};
  return std::ranges::find(kDTypes, dtype) != std::end(kDTypes);
}

// The engine's sums are in an order of its own.
bool is_taken(const Group& group, const Request& request, const Tensor& in, const Tensor& out) {
  const Tensor& any = in.defined() ? in : out;
  if (!any.defined() || group.size() == 1 || request.ordered || request.is_message()) return false;
  const DeviceState& device = device_of(any);
  const int32_t taken = group.state().job().engine().table().dlpack_type;
  if (!taken || device.info.dlpack_type != taken || !device.native) return false;
  if (request.how && !is_reducible(request.dtype)) return false;
  if (!in.defined() || !out.defined()) return is_dense(view_of(any));
  return &device_of(out) == &device && storage_of(in) != storage_of(out) && is_dense(view_of(in)) && is_dense(view_of(out));
}

char* address_of(const Tensor& x) { return reinterpret_cast<char*>(view_of(x).buffer) + view_of(x).offset; }

// The tensors' work so far comes before the collective, and their work after wait() behind it.
Work start_on_device(const Group& group, Request request, const Tensor& in, const Tensor& out) {
  const bool is_in_place = request.kind == PLUGRAD_COLL_ALL_REDUCE || request.kind == PLUGRAD_COLL_BROADCAST;
  DeviceState& device = device_of(in.defined() ? in : out);
  auto state = std::make_shared<WorkState>();
  for (const Tensor& each : {in, out})
    if (each.defined()) state->memory.push_back(each);
  if (in.defined()) request.from = address_of(in);
  if (out.defined()) request.to = address_of(out);
  if (is_in_place) {
    if (!request.from) request.from = request.to;
    if (!request.to) request.to = const_cast<void*>(request.from);
  }
  if (Tensor written = out; written.defined()) raise_version(written);
  request.stream = native::side_stream(device);
  request.device = device.info.dlpack_index;
  for (const Tensor& each : state->memory) native::release(*storage_of(each), request.stream);
  // From then on the memory may be used again, in the order of the device's own stream.
  state->then = [&memory = state->memory, stream = request.stream] {
    for (const Tensor& each : memory) native::acquire(*storage_of(each), stream);
    memory.clear();
  };
  group.state().submit(std::move(request), state);
  return Work(std::move(state));
}

Work start_now(const Group& group, Request request, const Tensor& in, const Tensor& out) {
  if (request.dtype == PLUGRAD_BOOL && request.how) request.dtype = PLUGRAD_U8;
  const Tensor read = request.kind == PLUGRAD_COLL_ALL_REDUCE ? Tensor() : in;  // it is in place
  if (is_taken(group, request, read, out)) return start_on_device(group, std::move(request), read, out);
  Elements from, to;
  if (request.kind == PLUGRAD_COLL_ALL_REDUCE) from = to = std::make_shared<HostElements>(out, true, true);
  else {
    if (in.defined()) from = std::make_shared<HostElements>(in, true, false, out);
    if (out.defined()) to = std::make_shared<HostElements>(out, false, true);
    if (request.kind == PLUGRAD_COLL_BROADCAST) from = to = from ? from : to;
  }
  if (from) request.from = from->data();
  if (to) request.to = to->data();
  auto state = std::make_shared<WorkState>();
  state->then = [from, to] {
    if (to) to->finish();
  };
  group.state().submit(std::move(request), state);
  return Work(std::move(state));
}

// Waits for the end of a work, and stores its results.
void finish(WorkState& state) {
  if (state.complete) state.complete();
  std::unique_lock lock(state.mutex);
  // On a busy core, a thread that sleeps waits for the end of another thread's slice, some 4 ms.
  for (const auto end = Engine::Clock::now() + kSpin; !state.ended && !state.in_order && Engine::Clock::now() < end;) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  state.changed.wait(lock, [&] { return state.ended || state.in_order; });
  if (state.error) {
    state.job->tell();
    std::rethrow_exception(state.error);
  }
  const auto then = std::exchange(state.then, {});
  lock.unlock();  // it may wait for the device, and the engine may end the work meanwhile
  if (then) then();
}

// A collective of a compiled step: two calls of the step share it.
struct StepCollective {
  Group group;
  Request request;
  bool has_input, has_output;
  Work work = {};  // from start to wait
  bool is_started = false;
};

class StartTask final : public HostTask {
 public:
  explicit StartTask(std::shared_ptr<StepCollective> of) : of_(std::move(of)) {}
  void call(std::span<const Tensor> operands) override {
    const Tensor in = of_->has_input ? operands.back() : Tensor(), out = of_->has_output ? operands.front() : Tensor();
    of_->work = start_now(of_->group, of_->request, in, out);
    of_->is_started = true;
  }
  std::string text() const override { return of_->request.text() + ", start"; }
  bool is_in_flight() const override { return true; }
  std::string flaw() const override {
    return of_->is_started ? "it starts " + of_->request.text() + " and does not wait for it: call wait() inside" : "";
  }

 private:
  std::shared_ptr<StepCollective> of_;
};

class WaitTask final : public HostTask {
 public:
  explicit WaitTask(std::shared_ptr<StepCollective> of) : of_(std::move(of)) {}
  void call(std::span<const Tensor>) override {
    of_->is_started = false;
    std::exchange(of_->work, {}).wait();
  }
  std::string text() const override { return of_->request.text() + ", wait"; }

 private:
  std::shared_ptr<StepCollective> of_;
};

std::vector<Tensor> defined(const Tensor& x) { return x.defined() ? std::vector<Tensor>{x} : std::vector<Tensor>(); }

Work start_in_step(const Group& group, Request request, const Tensor& in, const Tensor& out) {
  const auto both = std::make_shared<StepCollective>(StepCollective{group, std::move(request), in.defined(), out.defined()});
  run_in_step(std::make_shared<StartTask>(both), defined(out), defined(in));
  auto state = std::make_shared<WorkState>();
  state->in_step = [both, in, out] { run_in_step(std::make_shared<WaitTask>(both), defined(out), defined(in)); };
  return Work(std::move(state));
}
}  // namespace

Work start_collective(const Group& group, Request request, const Tensor& in, const Tensor& out) {
  const auto start = observe::is_recorded() ? start_in_step : start_now;
  return start(group, std::move(request), in, out);
}

// The engine gets a copy: after a failure it may still write.
void exchange_numbers(const Group& group, Request request, std::span<std::byte> numbers) {
  if (!group.defined()) return;
  const auto copy = std::make_shared<std::vector<std::byte>>(numbers.begin(), numbers.end());
  request.from = request.to = copy->data();
  request.count = numbers.size() / element_size(request.dtype);
  const auto state = std::make_shared<WorkState>();
  state->then = [copy, numbers] { std::ranges::copy(*copy, numbers.begin()); };
  group.state().submit(std::move(request), state);
  finish(*state);
}

void reduce_numbers(const Group& group, std::span<double> numbers, uint32_t how) {
  Request request;
  request.kind = PLUGRAD_COLL_ALL_REDUCE;
  request.dtype = PLUGRAD_F64;
  request.how = how;
  exchange_numbers(group, std::move(request), std::as_writable_bytes(numbers));
}

void Work::wait() {
  if (!state_) return;
  const std::shared_ptr<WorkState> state = std::exchange(state_, nullptr);
  if (state->in_step) return state->in_step();
  observe::unrepeatable("waits for a collective that started before it", "start it inside too");
  finish(*state);
}

bool Work::is_completed() const {
  if (!state_) return true;
  observe::unrepeatable("asks whether a collective has ended", "wait for it");
  const std::lock_guard lock(state_->mutex);
  return state_->ended;
}

}  // namespace plugrad::distributed
