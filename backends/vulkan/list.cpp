#include <backends/vulkan/list.hpp>

#include <cstring>

namespace plugrad::vulkan {

// --- The tape.

std::span<const Tape::Step> Tape::steps_of(uint32_t call) const {
  const size_t begin = call ? ends_[call - 1] : 0;
  return std::span(steps_).subspan(begin, ends_[call] - begin);
}

void Tape::begin(uint32_t call) {
  call_ = call;
  at_ = call ? ends_[call - 1] : 0;
  differs_ = false;
}

bool Tape::matches(const Step& made) {
  if (call_ == known_) return false;
  const bool is_there = at_ < ends_[call_];
  const Step* const known = is_there ? &steps_[at_] : nullptr;
  const bool is_equal = known && known->pipeline == made.pipeline && known->bytes == made.bytes &&
                        known->groups == made.groups && known->failed_at == made.failed_at;
  if (!is_equal) differs_ = true;
  return is_equal;
}

void Tape::add(const VulkanStream::Dispatch& made) {
  Step step{made.pipeline, made.bytes, made.groups, made.failed_at, image_.size()};
  if (matches(step)) {
    step.offset = steps_[at_].offset;
  } else {
    if (differs_) return;
    image_.resize(image_.size() + step_of(made.bytes));
    steps_.push_back(step);
  }
  std::memcpy(image_.data() + step.offset, made.parameters, made.bytes);
  ++at_;
}

void Tape::add_barrier() {
  const Step barrier{};
  if (!matches(barrier) && !differs_) steps_.push_back(barrier);
  ++at_;
}

bool Tape::end() {
  if (call_ == known_) {
    ends_[known_++] = steps_.size();
    return true;
  }
  return !differs_ && at_ == ends_[call_];
}

// --- The list.

VulkanList::VulkanList(Device& device, Heap& heap, VkPipelineLayout layout, VulkanStream& stream,
                       std::span<const plugrad_list_call> calls)
    : device_(device), heap_(heap), f_(device.functions()), layout_(layout), stream_(stream),
      calls_(calls.begin(), calls.end()), tape_(static_cast<uint32_t>(calls.size())) {
  record_all();
  auto pool = typed<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = device.candidate().queue_family;
  device.check(f_.vkCreateCommandPool(device.handle(), &pool, nullptr, &pool_), "vkCreateCommandPool");
}

// If a wait fails, the instances are kept: a lost device may use them, and the stream refers to them.
VulkanList::~VulkanList() {
  try {
    for (const Instance& each : instances_) stream_.wait_for_reel(each.reel);
  } catch (const std::exception&) {
    if (auto* const kept = new (std::nothrow) std::deque<Instance>) kept->swap(instances_);
    return;
  }
  f_.vkDestroyCommandPool(device_.handle(), pool_, nullptr);
  for (const Instance& each : instances_)
    if (each.memory.mapped) heap_.release(each.memory);
}

void VulkanList::run_call(uint32_t call) {
  struct Set {
    Set(VulkanStream& stream, Tape& tape) : of(stream) { of.set_tape(&tape); }
    ~Set() { of.set_tape(nullptr); }
    VulkanStream& of;
  };
  const plugrad_list_call& c = calls_[call];
  const Set set(stream_, tape_);
  const plugrad_status status = c.kernel->run(c.kernel, stream_.handle(), c.op);
  if (status != PLUGRAD_OK) throw CallFailed{status};
}

void VulkanList::record_all() {
  is_on_tape_ = false;
  tape_ = Tape(static_cast<uint32_t>(calls_.size()));
  for (uint32_t i = 0; i < calls_.size(); ++i) {
    tape_.begin(i);
    run_call(i);
    tape_.end();
  }
  for (Instance& each : instances_) each.is_recorded = false;
  is_on_tape_ = true;
}

bool VulkanList::record_again(uint32_t call) {
  tape_.begin(call);
  run_call(call);
  return tape_.end();
}

VulkanList::Instance& VulkanList::free_instance() {
  const auto find = [&] { return std::ranges::find_if(instances_, [](const Instance& i) { return !i.reel.is_flying; }); };
  auto found = find();
  if (found == instances_.end()) {
    stream_.look();
    found = find();
  }
  if (found == instances_.end() && instances_.size() < kInstances) {
    make_instance();
    return instances_.back();
  }
  if (found == instances_.end()) {
    stream_.wait_for_reel(std::ranges::min_element(instances_, {}, [](const Instance& i) { return i.reel.value; })->reel);
    found = find();
  }
  return *found;
}

void VulkanList::make_instance() {
  VkCommandBuffer commands = nullptr;
  auto info = typed<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  device_.check(f_.vkAllocateCommandBuffers(device_.handle(), &info, &commands), "vkAllocateCommandBuffers");
  instances_.emplace_back().reel.commands = commands;
}

void VulkanList::write_parameters(Instance& instance, std::span<const Tape::Step> steps) const {
  for (const Tape::Step& each : steps) {
    if (!each.pipeline) continue;
    char* const to = instance.memory.mapped + kWordBytes + each.offset;
    std::memcpy(to, tape_.image().data() + each.offset, each.bytes);
    if (each.failed_at != VulkanStream::kNowhere)
      std::memcpy(to + each.failed_at, &instance.memory.address, sizeof instance.memory.address);
  }
}

// Brings an instance up to date. The instance is not in flight.
void VulkanList::prepare(Instance& instance) {
  if (!instance.is_recorded) {
    record_commands(instance);
  } else {
    for (uint32_t call = 0; call < calls_.size(); ++call)
      if (instance.stale[call]) write_parameters(instance, tape_.steps_of(call));
  }
  instance.stale.assign(calls_.size(), false);
  std::memset(instance.memory.mapped, 0xff, sizeof(uint32_t));
}

void VulkanList::record_commands(Instance& instance) {
  const uint64_t bytes = kWordBytes + tape_.image().size();
  if (instance.memory.bytes < bytes) {
    if (instance.memory.mapped) heap_.release(std::exchange(instance.memory, {}));
    instance.memory = heap_.make(bytes, true);
    instance.reel.words = reinterpret_cast<const uint32_t*>(instance.memory.mapped);
  }
  write_parameters(instance, tape_.steps());
  const VkCommandBuffer commands = instance.reel.commands;
  const VkDeviceAddress parameters = instance.memory.address + kWordBytes;
  const auto info = typed<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  device_.check(f_.vkBeginCommandBuffer(commands, &info), "vkBeginCommandBuffer");
  for (uint32_t call = 0; call < calls_.size(); ++call) {
    record_barrier(f_, commands);
    for (const Tape::Step& each : tape_.steps_of(call)) {
      if (each.pipeline) record(f_, commands, layout_, each.pipeline, parameters + each.offset, each.groups);
      else record_barrier(f_, commands);
    }
  }
  record_end(f_, commands);
  device_.check(f_.vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  instance.is_recorded = true;
}

void VulkanList::run(uint64_t first, Changes changes) {
  stream_.demand_sound();
  for (uint32_t call = 0; call < calls_.size() && is_on_tape_; ++call) {
    if (!changes.at(call)) continue;
    is_on_tape_ = record_again(call);
    for (Instance& each : instances_)
      if (each.is_recorded) each.stale[call] = true;
  }
  if (!is_on_tape_) record_all();
  Instance& instance = free_instance();
  prepare(instance);
  stream_.submit_reel(instance.reel, first, static_cast<uint32_t>(calls_.size()));
}

}  // namespace plugrad::vulkan
