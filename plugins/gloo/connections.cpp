#include <plugins/gloo/connections.hpp>

#include <gloo/common/error.h>
#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

using gloo::transport::UnboundBuffer;
using std::chrono::milliseconds;

namespace {
[[noreturn]] void throw_aborted() { throw gloo::IoException("the group was aborted"); }
}  // namespace

// The buffers whose messages are under way.
class Waits {
 public:
  void add(UnboundBuffer& buffer) {
    const std::lock_guard lock(mutex_);
    if (aborted_) throw_aborted();
    buffers_.insert(&buffer);
  }
  void remove(UnboundBuffer& buffer) {
    const std::lock_guard lock(mutex_);
    buffers_.erase(&buffer);
  }
  void abort() {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    for (UnboundBuffer* each : buffers_) {
      each->abortWaitSend();
      each->abortWaitRecv();
    }
  }

 private:
  std::mutex mutex_;
  std::set<UnboundBuffer*> buffers_;
  bool aborted_ = false;
};

namespace {
// A buffer of Gloo's. Where Gloo's wait returns false, which its collectives ignore, this one throws.
class Buffer final : public UnboundBuffer {
 public:
  Buffer(std::unique_ptr<UnboundBuffer> inner, std::shared_ptr<Waits> waits)
      : UnboundBuffer(inner->ptr, inner->size), inner_(std::move(inner)), waits_(std::move(waits)) {
    waits_->add(*inner_);
  }
  ~Buffer() override { waits_->remove(*inner_); }
  bool waitRecv(int* rank, milliseconds timeout) override {
    if (!inner_->waitRecv(rank, timeout)) throw_aborted();
    return true;
  }
  bool waitSend(int* rank, milliseconds timeout) override {
    if (!inner_->waitSend(rank, timeout)) throw_aborted();
    return true;
  }
  void abortWaitRecv() override { inner_->abortWaitRecv(); }
  void abortWaitSend() override { inner_->abortWaitSend(); }
  void send(int rank, uint64_t slot, size_t offset, size_t bytes) override { inner_->send(rank, slot, offset, bytes); }
  void recv(int rank, uint64_t slot, size_t offset, size_t bytes) override { inner_->recv(rank, slot, offset, bytes); }
  void recv(std::vector<int> ranks, uint64_t slot, size_t offset, size_t bytes) override {
    inner_->recv(std::move(ranks), slot, offset, bytes);
  }

 private:
  std::unique_ptr<UnboundBuffer> inner_;
  std::shared_ptr<Waits> waits_;
};

class Transport final : public gloo::transport::Context {
 public:
  Transport(std::shared_ptr<gloo::transport::Context> inner, std::shared_ptr<Waits> waits)
      : gloo::transport::Context(inner->rank, inner->size), inner_(std::move(inner)), waits_(std::move(waits)) {
    setTimeout(inner_->getTimeout());
  }
  std::unique_ptr<gloo::transport::Pair>& getPair(int peer) override { return inner_->getPair(peer); }
  std::unique_ptr<gloo::transport::Pair>& createPair(int peer) override { return inner_->createPair(peer); }
  std::unique_ptr<UnboundBuffer> createUnboundBuffer(void* memory, size_t bytes) override {
    return std::make_unique<Buffer>(inner_->createUnboundBuffer(memory, bytes), waits_);
  }

 private:
  std::shared_ptr<gloo::transport::Context> inner_;
  std::shared_ptr<Waits> waits_;
};
}  // namespace

Connections::Connections(int rank, int size, gloo::rendezvous::Store& store, std::shared_ptr<gloo::transport::Device> device,
                         milliseconds timeout)
    : gloo::rendezvous::Context(rank, size), waits_(std::make_shared<Waits>()) {
  setTimeout(timeout);
  connectFullMesh(store, device);
  transportContext_ = std::make_shared<Transport>(std::move(transportContext_), waits_);
}

void Connections::abort() { waits_->abort(); }
