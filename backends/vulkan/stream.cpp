#include <backends/vulkan/list.hpp>

#include <cctype>
#include <cstring>

namespace plugrad::vulkan {
namespace {

constexpr uint32_t kNoFailure = ~uint32_t{0};
}  // namespace

VulkanStream::VulkanStream(Device& device, Heap& heap, VkPipelineLayout layout, Batching batching)
    : device_(device), heap_(heap), f_(device.functions()), layout_(layout), batching_(batching) {
  auto pool = typed<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = device.candidate().queue_family;
  device.check(f_.vkCreateCommandPool(device.handle(), &pool, nullptr, &pool_), "vkCreateCommandPool");
  auto type = typed<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  auto semaphore = typed<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type);
  device.check(f_.vkCreateSemaphore(device.handle(), &semaphore, nullptr, &timeline_), "vkCreateSemaphore");
  staging_ = heap.make(kSlots * kSlotBytes, true);
  word_ = heap.make(sizeof(uint32_t) * 16, true);
  std::memset(word_.mapped, 0xff, sizeof(uint32_t));
}

// --- Failures: shaders write the smallest ordinal of an op with a bad index, and its opcode, into words of host memory.

namespace {
const uint32_t* words_of(const Memory& memory) { return reinterpret_cast<const uint32_t*>(memory.mapped); }
uint32_t ordinal_in(const uint32_t* words) { return __atomic_load_n(words, __ATOMIC_ACQUIRE); }
}  // namespace

bool VulkanStream::has_failed() const {
  return failed_in_reel_.load(std::memory_order_acquire) || ordinal_in(words_of(word_)) != kNoFailure;
}

// The first of the stream. Called if it has failed.
VulkanStream::Failure VulkanStream::failure() const {
  const Failure in_reel{failed_in_reel_.load(std::memory_order_acquire), opcode_in_reel_};
  const uint32_t* const words = words_of(word_);
  if (ordinal_in(words) == kNoFailure) return in_reel;
  const Failure found{base_ + ordinal_in(words), words[1]};
  return in_reel.number && in_reel.number < found.number ? in_reel : found;
}

void VulkanStream::throw_index_error(const Failure& failure) {
  const OpInfo* const op = op_info(failure.opcode);
  std::string name = op ? op->name : "an op";
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  throw BackendError(PLUGRAD_DEVICE_ERROR, name + ": an index is out of range");
}

void VulkanStream::demand_sound() const {
  device_.demand();
  if (has_failed()) throw_index_error(failure());
}

// Reels complete in the order of their numbers. Once is_flying is false, the submitting thread may change the reel, so this
// function reads its words before.
void VulkanStream::land(Reel& reel) {
  const uint32_t ordinal = ordinal_in(reel.words);
  if (ordinal != kNoFailure && !failed_in_reel_) {
    opcode_in_reel_ = reel.words[1];
    failed_in_reel_.store(reel.first + ordinal, std::memory_order_release);
  }
  reel.is_flying.store(false, std::memory_order_release);
}

// Lets the word count from a later number before ordinals no longer fit it.
void VulkanStream::rebase(Lock& lock, uint64_t number) {
  if (number - base_ < kNoFailure) return;
  flush();
  wait_value(lock, signaled_);
  demand_sound();
  base_ = submitted_;
}

// --- Batches.

void VulkanStream::poll() {
  device_.check(f_.vkGetSemaphoreCounterValue(device_.handle(), timeline_, &done_), "vkGetSemaphoreCounterValue");
  while (!flying_.empty() && flying_.front().value <= done_) {
    if (Reel* const reel = flying_.front().reel) land(*reel);
    else free_.push_back(flying_.front().batch);
    flying_.pop_front();
  }
}

void VulkanStream::wait_value(Lock& lock, uint64_t value) {
  if (done_ >= value) return;
  auto info = typed<VkSemaphoreWaitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline_;
  info.pValues = &value;
  lock.unlock();
  const VkResult result = f_.vkWaitSemaphores(device_.handle(), &info, UINT64_MAX);
  lock.lock();
  device_.check(result, "vkWaitSemaphores");
  poll();
}

void VulkanStream::make_batch() {
  const size_t in_block = batches_.size() % kBatchesInBlock;
  if (!in_block) parameters_ = heap_.make(kBatchesInBlock * kParameterBytes, true);
  auto batch = std::make_unique<Batch>();
  batch->blocks.push_back(
      {parameters_.mapped + in_block * kParameterBytes, parameters_.address + in_block * kParameterBytes});
  auto info = typed<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  device_.check(f_.vkAllocateCommandBuffers(device_.handle(), &info, &batch->commands), "vkAllocateCommandBuffers");
  free_.push_back(batch.get());
  batches_.push_back(std::move(batch));
}

void VulkanStream::begin(Lock& lock) {
  if (open_ && open_->is_ended) flush();
  if (open_) return;
  if (free_.empty()) poll();
  while (free_.empty() && batches_.size() == kBatches) wait_value(lock, flying_.front().value);
  if (open_) return;
  if (free_.empty()) make_batch();
  Batch* const batch = free_.back();
  auto info = typed<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  device_.check(f_.vkBeginCommandBuffer(batch->commands, &info), "vkBeginCommandBuffer");
  free_.pop_back();
  batch->end = {};
  batch->ops = 0;
  batch->is_ended = false;
  open_ = batch;
}

void VulkanStream::flush() {
  if (!open_) return;
  Batch* const batch = open_;
  if (!batch->is_ended) {
    record_end(f_, batch->commands);  // the failure word
    device_.check(f_.vkEndCommandBuffer(batch->commands), "vkEndCommandBuffer");
    batch->is_ended = true;
  }
  const uint64_t value = std::max(submitted_ << kPieceBits, signaled_ + 1);
  submit(batch->commands, value);
  for (Slot& slot : slots_)
    if (std::exchange(slot.is_in_open, false)) slot.value = value;
  take_off({value, batch, nullptr});
  open_ = nullptr;
}

void VulkanStream::take_off(Flight flight) {
  signaled_ = flight.value;
  awaited_.clear();
  awaited_values_.clear();
  flying_.push_back(flight);
}

// Submits a reel after all earlier commands of the stream.
void VulkanStream::submit_reel(Reel& reel, uint64_t first, uint32_t count) {
  const Lock lock(mutex_);
  flush();
  const uint64_t last = first + count - 1, value = std::max(last << kPieceBits, signaled_ + 1);
  submit(reel.commands, value);
  submitted_ = last;
  reel.first = first;
  reel.value = value;
  reel.is_flying = true;
  take_off({value, nullptr, &reel});
}

void VulkanStream::look() {
  const Lock lock(mutex_);
  poll();
}

void VulkanStream::wait_for_reel(const Reel& reel) {
  Lock lock(mutex_);
  if (reel.is_flying) wait_value(lock, reel.value);
}

void VulkanStream::submit(VkCommandBuffer commands, uint64_t value) {
  const std::vector<VkPipelineStageFlags> stages(awaited_.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  auto timeline = typed<VkTimelineSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
  timeline.waitSemaphoreValueCount = static_cast<uint32_t>(awaited_values_.size());
  timeline.pWaitSemaphoreValues = awaited_values_.data();
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &value;
  auto info = typed<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO, &timeline);
  info.waitSemaphoreCount = timeline.waitSemaphoreValueCount;
  info.pWaitSemaphores = awaited_.data();
  info.pWaitDstStageMask = stages.data();
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &timeline_;
  device_.submit(info);
}

void VulkanStream::barrier() { record_barrier(f_, open_->commands); }

void VulkanStream::open_op(Lock& lock) {
  begin(lock);
  open_->op = open_->end;
  barrier();
}

// Submits a full batch, or a smaller batch if the device is idle. The op itself is accepted: if the driver has no memory for
// the submission, the stream retries it when the next op begins or a thread waits.
void VulkanStream::close_op(uint64_t number) {
  submitted_ = number;
  const uint32_t ops = ++open_->ops;
  if (ops < batching_.ops) {
    if (ops % batching_.eager) return;
    poll();
    if (!flying_.empty()) return;
  }
  try {
    flush();
  } catch (const BackendError& error) {
    if (error.status() != PLUGRAD_OUT_OF_MEMORY) throw;
  }
}

VulkanStream::Recording::Recording(VulkanStream& stream, uint64_t number) : stream_(stream), number_(number) {
  if (stream.tape_) return;
  lock_ = Lock(stream.mutex_);
  stream.rebase(lock_, number);
  stream.open_op(lock_);
}

void VulkanStream::Recording::barrier() { stream_.tape_ ? stream_.tape_->add_barrier() : stream_.barrier(); }

uint32_t VulkanStream::Recording::ordinal() const {
  return stream_.tape_ ? stream_.tape_->call() : static_cast<uint32_t>(number_ - stream_.base_);
}

void VulkanStream::add_to_tape(const Dispatch& made) { tape_->add(made); }

// An op is in one submission: an op split by a refused submission would run in part, and again in full with the next
// attempt.
void VulkanStream::add_block() {
  Batch& batch = *open_;
  if (batch.end.block + 1 == batch.blocks.size()) {
    const Memory memory = heap_.make(kParameterBytes, true);
    batch.blocks.push_back({memory.mapped, memory.address});
  }
  batch.end = {batch.end.block + 1, 0};
}

// Commands cannot be taken back, but with parameters of zeros a shader has nothing to do.
void VulkanStream::cancel_op() noexcept {
  for (Mark at = open_->op; at.block <= open_->end.block; at = {at.block + 1, 0}) {
    const uint64_t end = at.block == open_->end.block ? open_->end.used : kParameterBytes;
    std::memset(open_->blocks[at.block].bytes + at.used, 0, end - at.used);
  }
}

void VulkanStream::dispatch(const Dispatch& made) {
  const uint64_t step = Tape::step_of(made.bytes);
  if (open_->end.used + step > kParameterBytes) {
    try {
      add_block();
    } catch (const std::exception&) {
      cancel_op();
      throw;
    }
  }
  const Parameters& block = open_->blocks[open_->end.block];
  std::memcpy(block.bytes + open_->end.used, made.parameters, made.bytes);
  const VkDeviceAddress address = block.address + open_->end.used;
  open_->end.used += step;
  record(f_, open_->commands, layout_, made.pipeline, address, made.groups);
}

// --- Numbers.

plugrad_status VulkanStream::completed(uint64_t& number) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    if (!device_.lost()) {
      poll();
      if (open_ && flying_.empty() && open_->ops) flush();
    }
  } catch (const std::exception&) {  // a lost device is noted; otherwise the work stays recorded for the next call
  }
  number = device_.lost() ? submitted_ : reached();
  if (device_.lost()) return PLUGRAD_DEVICE_LOST;
  return has_failed() ? PLUGRAD_DEVICE_ERROR : PLUGRAD_OK;
}

void VulkanStream::wait_for(VulkanStream& other, uint64_t& number) {
  VkSemaphore semaphore = nullptr;
  uint64_t value = 0;
  {
    const std::lock_guard lock(other.mutex_);
    if (!number || number > other.submitted_)
      throw BackendError(PLUGRAD_INVALID, "cannot wait for number " + std::to_string(number) + ": the stream's last is " +
                                              std::to_string(other.submitted_));
    if (number > other.signaled_ >> kPieceBits) other.flush();
    other.poll();
    if (other.reached() >= number) {
      number = other.reached();
      return;
    }
    number = other.signaled_ >> kPieceBits;
    value = other.signaled_;
    semaphore = other.timeline_;
  }
  const std::lock_guard lock(mutex_);
  flush();  // the work recorded so far need not wait
  awaited_.push_back(semaphore);
  awaited_values_.push_back(value);
}

void VulkanStream::sync(plugrad_failure& failure) {
  device_.demand();
  Lock lock(mutex_);
  flush();
  wait_value(lock, signaled_);
  const bool failed = has_failed();
  const Failure found = this->failure();
  __atomic_store_n(reinterpret_cast<uint32_t*>(word_.mapped), kNoFailure, __ATOMIC_RELEASE);
  failed_in_reel_ = 0;
  base_ = submitted_;
  if (!failed) return;
  failure.first = failure.last = found.number;
  failure.status = PLUGRAD_INDEX_ERROR;
  throw_index_error(found);
}

}  // namespace plugrad::vulkan
