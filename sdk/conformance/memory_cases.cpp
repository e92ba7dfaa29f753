// Allocation and copies.
#include <sdk/conformance/sanitizer.hpp>
#include <sdk/conformance/session.hpp>

#include <algorithm>
#include <memory>

namespace plugrad::conformance {
namespace {

constexpr uint64_t kSizes[] = {1, 2, 3, 8, 63, 64, 65, 100, 4096, 4097, 1 << 20, (3 << 20) + 1};

std::vector<unsigned char> noise(uint64_t bytes, uint64_t seed) {
  Random random(seed);
  std::vector<unsigned char> data(bytes);
  for (unsigned char& b : data) b = static_cast<unsigned char>(random.bits());
  return data;
}

void check_alloc(Session& session, Tally& tally) {
  Device& device = session.device;
  std::vector<std::unique_ptr<Block>> blocks;
  for (const uint64_t bytes : kSizes) {
    blocks.push_back(std::make_unique<Block>(device, bytes));
    const auto address = reinterpret_cast<uintptr_t>(blocks.back()->buffer());
    if (device.host_memory())
      tally.check(address % device.info().alignment == 0, "alloc of " + std::to_string(bytes) + " bytes is not aligned to " +
                                                              std::to_string(device.info().alignment));
    const bool again =
        std::any_of(blocks.begin(), blocks.end() - 1, [&](const auto& b) { return b->buffer() == blocks.back()->buffer(); });
    tally.check(!again, "alloc returned a buffer that is already in use");
  }
  Queue queue = device.make_queue();
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto data = noise(blocks[i]->bytes(), i);
    device.upload(queue, blocks[i]->buffer(), 0, data.data(), data.size());
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto sent = noise(blocks[i]->bytes(), i);
    std::vector<unsigned char> got(sent.size());
    device.download(queue, got.data(), blocks[i]->buffer(), 0, got.size());
    tally.check(got == sent, "a buffer of " + std::to_string(got.size()) + " bytes lost its contents to another");
  }
  for (int round = 0; round < 200; ++round) {
    const Block block(device, 1 + round * 97 % 5000);
    tally.count();
  }
}

void check_too_much(Session& session, Tally& tally) {
  const plugrad_backend& table = *session.plugin.table;
  if (!table.alloc) return tally.skip("the host allocates this device's memory");
  if (kSanitized) return tally.skip("a sanitizer's allocator would end the process");
  plugrad_buffer* buffer = nullptr;
  const Outcome outcome = attempt("alloc", [&] { return table.alloc(session.device.handle(), uint64_t{1} << 60, &buffer); });
  tally.check(outcome.status == PLUGRAD_OUT_OF_MEMORY,
              "alloc of 2^60 bytes returned " + outcome.text() + ", expected OUT_OF_MEMORY");
  const Block block(session.device, 64);
  tally.count();
}

void check_memory_info(Session& session, Tally& tally) {
  const plugrad_backend& table = *session.plugin.table;
  if (!table.memory_info) return tally.skip("the plugin has no memory_info");
  uint64_t available = UINT64_MAX, total = 0;  // values that are not written are out of bounds
  const Outcome outcome =
      attempt("memory_info", [&] { return table.memory_info(session.device.handle(), &available, &total); });
  tally.check(outcome.ok(), "memory_info returned " + outcome.text());
  tally.check(total > 0 && available <= total,
              "memory_info says " + std::to_string(available) + " free of " + std::to_string(total));
}

struct Piece {
  uint64_t to, from, bytes;
};
constexpr Piece kPieces[] = {{0, 0, 1},   {1, 0, 3},      {3, 1, 7},       {7, 5, 64},      {5, 64, 63},
                             {64, 3, 65}, {13, 17, 1000}, {129, 77, 4096}, {4099, 1, 8191}, {1, 4097, 16384}};

void check_round_trip(Session& session, Tally& tally) {
  constexpr uint64_t kBytes = 32768;
  Device& device = session.device;
  Queue queue = device.make_queue();
  const Block block(device, kBytes);
  std::vector<unsigned char> image = noise(kBytes, 1), got(kBytes);
  const std::vector<unsigned char> source = noise(kBytes, 2);
  device.upload(queue, block.buffer(), 0, image.data(), kBytes);
  for (const Piece& p : kPieces) {
    std::copy_n(source.begin() + p.from, p.bytes, image.begin() + p.to);
    device.upload(queue, block.buffer(), p.to, source.data() + p.from, p.bytes);
    device.download(queue, got.data(), block.buffer(), 0, kBytes);
    tally.check(got == image, "a copy of " + std::to_string(p.bytes) + " bytes from the host to offset " +
                                  std::to_string(p.to) + " wrote wrong bytes");
    std::vector<unsigned char> part(p.bytes + 2, 0xAB), expected = part;
    std::copy_n(image.begin() + p.to, p.bytes, expected.begin() + 1);
    device.download(queue, part.data() + 1, block.buffer(), p.to, p.bytes);
    tally.check(part == expected, "a copy of " + std::to_string(p.bytes) + " bytes from offset " + std::to_string(p.to) +
                                      " to the host read wrong bytes");
  }
}

void check_between_buffers(Session& session, Tally& tally) {
  constexpr uint64_t kBytes = 32768;
  Device& device = session.device;
  Queue queue = device.make_queue();
  const Block to(device, kBytes), from(device, 2 * kBytes);
  std::vector<unsigned char> image = noise(kBytes, 3), got(kBytes);
  std::vector<unsigned char> source = noise(2 * kBytes, 4);
  device.upload(queue, to.buffer(), 0, image.data(), kBytes);
  device.upload(queue, from.buffer(), 0, source.data(), source.size());
  for (const Piece& p : kPieces) {
    Outcome outcome =
        device.copy(queue, copy_of(device.place(to.buffer(), p.to), device.place(from.buffer(), p.from), p.bytes));
    tally.check(outcome.ok(), "a copy within the device returned " + outcome.text());
    std::copy_n(source.begin() + p.from, p.bytes, image.begin() + p.to);
    // Also copy within a buffer, between ranges without overlap.
    const uint64_t far = kBytes + p.to;
    outcome = device.copy(queue, copy_of(device.place(from.buffer(), far), device.place(from.buffer(), p.from), p.bytes));
    tally.check(outcome.ok(), "a copy within a buffer returned " + outcome.text());
    std::copy_n(source.begin() + p.from, p.bytes, source.begin() + far);
  }
  device.download(queue, got.data(), to.buffer(), 0, kBytes);
  tally.check(got == image, "copies from buffer to buffer at odd offsets wrote wrong bytes");
  got.resize(source.size());
  device.download(queue, got.data(), from.buffer(), 0, got.size());
  tally.check(got == source, "copies within a buffer at odd offsets wrote wrong bytes");
}

void check_large_copy(Session& session, Tally& tally) {
  Device& device = session.device;
  Queue queue = device.make_queue();
  const std::vector<unsigned char> sent = noise((9 << 20) + 3, 5);
  std::vector<unsigned char> got(sent.size());
  const Block block(device, sent.size() + 1), other(device, sent.size());
  device.upload(queue, block.buffer(), 1, sent.data(), sent.size());
  const Outcome outcome =
      device.copy(queue, copy_of(device.place(other.buffer(), 0), device.place(block.buffer(), 1), sent.size()));
  tally.check(outcome.ok(), "a copy of 9 MiB within the device returned " + outcome.text());
  device.download(queue, got.data(), other.buffer(), 0, got.size());
  tally.check(got == sent, "9 MiB and 3 bytes changed on the way to the device and back");
}

void check_pinned(Session& session, Tally& tally) {
  const plugrad_backend& table = *session.plugin.table;
  if (!table.pin) return tally.skip("the plugin pins no memory");
  Device& device = session.device;
  constexpr uint64_t kBytes = 10007;
  void* address = nullptr;
  const Outcome pinned = attempt("pin", [&] { return table.pin(device.handle(), kBytes, &address); });
  if (!tally.check(pinned.ok() && address, "pin returned " + pinned.text())) return;
  Queue queue = device.make_queue();
  const Block block(device, kBytes);
  const std::vector<unsigned char> sent = noise(kBytes, 6);
  auto* bytes = static_cast<unsigned char*>(address);
  std::copy(sent.begin(), sent.end(), bytes);
  plugrad_place place = device.host_place(address);
  place.kind = PLUGRAD_PINNED;
  place.device = device.handle();
  Outcome outcome = device.copy(queue, copy_of(device.place(block.buffer(), 0), place, kBytes));
  tally.check(outcome.ok() && device.sync(queue).ok(), "a copy from pinned memory returned " + outcome.text());
  std::fill_n(bytes, kBytes, 0);
  outcome = device.copy(queue, copy_of(place, device.place(block.buffer(), 0), kBytes));
  tally.check(outcome.ok() && device.sync(queue).ok(), "a copy to pinned memory returned " + outcome.text());
  tally.check(std::equal(sent.begin(), sent.end(), bytes), "pinned memory changed on the way to the device and back");
  constexpr uint64_t kOffset = 1001, kPart = 3003;
  std::fill_n(bytes, kBytes, 0);
  place.offset = kOffset;
  outcome = device.copy(queue, copy_of(place, device.place(block.buffer(), 5), kPart));
  tally.check(outcome.ok() && device.sync(queue).ok(), "a copy to an offset in pinned memory returned " + outcome.text());
  std::vector<unsigned char> expected(kBytes, 0);
  std::copy_n(sent.begin() + 5, kPart, expected.begin() + kOffset);
  tally.check(std::equal(expected.begin(), expected.end(), bytes), "a copy to an offset in pinned memory wrote wrong bytes");
  table.unpin(device.handle(), address);
}

void check_across_devices(Session& session, Tally& tally) {
  if (session.devices < 2) return tally.skip("the plugin has one device");
  const uint32_t second = session.settings.device == 0 ? 1 : 0;
  Device other(session.plugin.table, session.host, second, session.settings.options);
  Device& device = session.device;
  if (!session.plugin.table->copy) return tally.skip("the host makes this device's copies");
  constexpr uint64_t kBytes = 5003;
  Queue queue = device.make_queue(), other_queue = other.make_queue();
  const Block from(device, kBytes), to(other, kBytes);
  const std::vector<unsigned char> sent = noise(kBytes, 7), before = noise(kBytes, 8);
  std::vector<unsigned char> got(kBytes);
  other.upload(other_queue, to.buffer(), 0, before.data(), kBytes);
  tally.check(other.sync(other_queue).ok(), "sync of the other device failed");
  device.upload(queue, from.buffer(), 0, sent.data(), kBytes);
  const Outcome outcome =
      device.copy(queue, copy_of(other.place(to.buffer(), 1), device.place(from.buffer(), 0), kBytes - 1));
  tally.check(outcome.ok() || outcome.status == PLUGRAD_UNSUPPORTED,
              "a copy across devices returned " + outcome.text() + ", expected OK or UNSUPPORTED");
  tally.check(device.sync(queue).ok(), "sync after a copy across devices failed");
  other.download(other_queue, got.data(), to.buffer(), 0, kBytes);
  std::vector<unsigned char> moved{before[0]};  // the copy begins at the second byte
  moved.insert(moved.end(), sent.begin(), sent.end() - 1);
  tally.check(got == (outcome.ok() ? moved : before), "a copy across devices wrote wrong bytes");
}

}  // namespace

std::vector<Case> memory_cases() {
  return {{"memory.alloc", check_alloc},
          {"memory.too_much", check_too_much},
          {"memory.info", check_memory_info},
          {"memory.round_trip", check_round_trip},
          {"memory.between_buffers", check_between_buffers},
          {"memory.large_copy", check_large_copy},
          {"memory.pinned", check_pinned},
          {"memory.across_devices", check_across_devices}};
}

}  // namespace plugrad::conformance
