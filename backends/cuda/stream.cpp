#include <backends/cuda/stream.hpp>

#include <backends/cuda/backend.hpp>

#include <cctype>
#include <cstring>

namespace plugrad::cuda {
namespace {

cudaEvent_t make_event(CudaBackend& backend) {
  cudaEvent_t event = nullptr;
  backend.check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  return event;
}

std::string failure_message(FailureWord::Word word) {
  const OpInfo* op = op_info(FailureWord::opcode(word));
  std::string name = op ? op->name : "an op";
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));  // as programs spell it
  return name + ": an index is out of range";
}

}  // namespace

// Allocates the memory of most later calls now, because allocating pinned memory waits for the device.
CudaStream::CudaStream(CudaBackend& backend) : backend_(backend) {
  backend.check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  for (Recorded& mark : ring_) mark.event = make_event(backend);
  make_slots(small_, kSlotBytes);
  void *word = nullptr, *claim = nullptr;
  backend.check(cudaMallocHost(&word, sizeof(FailureWord::Word)), "pinned memory of a stream");
  failure_.attach(static_cast<FailureWord::Word*>(word));
  backend.check(cudaMalloc(&claim, 2 * sizeof(FailureWord::Word)), "device memory of a stream");
  claim_ = static_cast<FailureWord::Word*>(claim);
  unclaim();
  backend.check(cudaMemsetAsync(claim_ + 1, 0, sizeof(FailureWord::Word), stream_), "cudaMemset");
  backend.check(cudaMalloc(&counters_, kCounters * sizeof *counters_), "counters of a stream");
  backend.check(cudaMemsetAsync(counters_, 0, kCounters * sizeof *counters_, stream_), "counters of a stream");
}

void CudaStream::make_slots(Slots& slots, uint64_t bytes) {
  void* pinned = nullptr;
  backend_.check(cudaMallocHost(&pinned, kSlots * bytes), "pinned memory of a stream");
  for (uint32_t i = 0; i < kSlots; ++i) slots.all[i] = {static_cast<char*>(pinned) + i * bytes, make_event(backend_)};
  slots.bytes = bytes;
}

// Fills the claim word with FailureWord::kNone, a word of set bits.
void CudaStream::unclaim() {
  static_assert(FailureWord::kNone == ~FailureWord::Word(0));
  backend_.check(cudaMemsetAsync(claim_, 0xff, sizeof(FailureWord::Word), stream_), "cudaMemset");
}

void CudaStream::demand_sound() const {
  if (backend_.lost()) backend_.throw_lost();
  const FailureWord::Word word = failure_.load();
  if (word != FailureWord::kNone) throw BackendError(PLUGRAD_DEVICE_ERROR, failure_message(word));
}

// --- Graphs.

void CudaStream::point_blas_at(cudaStream_t target) {
  const BlasHandle* const own = blas.load(std::memory_order_acquire);
  if (own && !backend_.blas()->point(*own, target))
    throw BackendError(PLUGRAD_INTERNAL, "cuBLAS does not take another stream");
}

void CudaStream::begin_capture() {
  if (!recorder_) backend_.check(cudaStreamCreateWithFlags(&recorder_, cudaStreamNonBlocking), "cudaStreamCreate");
  backend_.check(cudaStreamBeginCapture(recorder_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  captures_ = true;
  try {
    point_blas_at(recorder_);
  } catch (...) {
    if (const cudaGraph_t empty = end_capture()) cudaGraphDestroy(empty);
    throw;
  }
}

cudaGraph_t CudaStream::end_capture() {
  cudaGraph_t graph = nullptr;
  captures_ = false;
  const cudaError_t error = cudaStreamEndCapture(recorder_, &graph);
  if (error != cudaSuccess) cudaGetLastError();
  try {
    point_blas_at(stream_);
  } catch (const BackendError&) {
    blas = nullptr;  // products take our own kernel from now on
  }
  return error == cudaSuccess ? graph : nullptr;
}

// --- Copies to and from plain host memory. The driver would wait for the whole stream before it reads such a source.

// Large uploads have larger slots, so a copy takes much longer than its submission. If the machine cannot pin enough memory,
// large uploads use the small slots.
CudaStream::Slots& CudaStream::slots_for(uint64_t bytes) {
  if (bytes <= kSlots * kSlotBytes || large_refused_) return small_;
  if (large_.bytes) return large_;
  try {
    make_slots(large_, kLargeSlotBytes);
    return large_;
  } catch (const BackendError& error) {
    if (error.status() == PLUGRAD_DEVICE_LOST) throw;
    large_refused_ = true;
    return small_;
  }
}

void CudaStream::upload(char* to, const char* from, uint64_t bytes) {
  Slots& slots = slots_for(bytes);
  for (uint64_t at = 0; at < bytes; at += slots.bytes) {
    const uint64_t part = std::min(slots.bytes, bytes - at);
    Slot& slot = slots.all[slots.next++ % kSlots];
    backend_.check(cudaEventSynchronize(slot.is_free), "upload");
    std::memcpy(slot.bytes, from + at, part);
    backend_.check(cudaMemcpyAsync(to + at, slot.bytes, part, cudaMemcpyHostToDevice, stream_), "upload");
    backend_.check(cudaEventRecord(slot.is_free, stream_), "upload");
  }
}

// Small results, which programs read at each step, go through a pinned slot: the driver is slower for plain memory.
void CudaStream::download(char* to, const char* from, uint64_t bytes) {
  const bool small = bytes <= kSlotBytes;
  Slot& slot = small_.all[small_.next % kSlots];
  if (small) backend_.check(cudaEventSynchronize(slot.is_free), "download");
  char* const target = small ? slot.bytes : to;
  backend_.check(cudaMemcpyAsync(target, from, bytes, cudaMemcpyDeviceToHost, stream_), "download");
  backend_.check(cudaStreamSynchronize(stream_), "download");
  drained();
  demand_sound();
  if (small) std::memcpy(to, slot.bytes, bytes);
}

// --- Numbers and events.

// A full ring records its newest event again: the event then covers more work, and a waiter only waits longer.
CudaStream::Recorded& CudaStream::record() {
  const uint64_t number = submitted_.load(std::memory_order_acquire);
  if (tail_ != head_ && ring_[(tail_ - 1) % kEvents].number == number) return ring_[(tail_ - 1) % kEvents];
  if (tail_ - head_ == kEvents) --tail_;
  Recorded& mark = ring_[tail_ % kEvents];
  backend_.check(cudaEventRecord(mark.event, stream_), "cudaEventRecord");
  mark.number = number;
  ++tail_;
  return mark;
}

cudaError_t CudaStream::advance() noexcept {
  while (head_ != tail_) {
    const cudaError_t error = cudaEventQuery(ring_[head_ % kEvents].event);
    if (error != cudaSuccess) cudaGetLastError();
    if (error != cudaSuccess) return error == cudaErrorNotReady ? cudaSuccess : error;
    done_ = ring_[head_++ % kEvents].number;
  }
  return cudaSuccess;
}

// Called when the stream is idle without concurrent submissions, so all its events have completed.
void CudaStream::drained() {
  const std::lock_guard lock(mutex_);
  done_ = submitted_.load(std::memory_order_relaxed);
  head_ = tail_;
}

plugrad_status CudaStream::completed(uint64_t& number) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    const CallScope scope(backend_.index());
    backend_.check(advance(), "cudaEventQuery");
    if (head_ == tail_ && done_ < submitted_.load(std::memory_order_acquire)) {
      record();
      backend_.check(advance(), "cudaEventQuery");
    }
  } catch (const BackendError& error) {
    if (error.status() == PLUGRAD_DEVICE_LOST) backend_.lose(error.what());
  }
  if (backend_.lost()) {
    number = submitted_.load();
    return PLUGRAD_DEVICE_LOST;
  }
  number = done_;
  return failure_.load() == FailureWord::kNone ? PLUGRAD_OK : PLUGRAD_DEVICE_ERROR;  // read after the events
}

// Releases the lock before `stream` waits: an event recorded again in between covers more work, never less.
void CudaStream::make_wait(cudaStream_t stream, uint64_t& number) {
  if (!number || number > submitted_.load(std::memory_order_acquire))
    throw BackendError(PLUGRAD_INVALID, "cannot wait for number " + std::to_string(number) + ": the stream's last is " +
                                            std::to_string(submitted_.load()));
  cudaEvent_t event = nullptr;
  const CallScope scope(backend_.index());
  {
    const std::lock_guard lock(mutex_);
    if (done_ >= number) {
      number = done_;
      return;
    }
    const Recorded& mark = record();
    number = mark.number;
    event = mark.event;
  }
  backend_.check(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
}

void CudaStream::sync(plugrad_failure& failure) {
  if (backend_.lost()) backend_.throw_lost();
  backend_.check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  drained();
  const FailureWord::Word word = failure_.clear();
  if (word == FailureWord::kNone) return;
  unclaim();
  failure.status = PLUGRAD_INDEX_ERROR;
  failure.first = failure.last = FailureWord::number(word);
  throw BackendError(PLUGRAD_DEVICE_ERROR, failure_message(word));
}

}  // namespace plugrad::cuda
