// Copies between the host and devices, and between devices.
#include <backends/cuda/backend.hpp>

namespace plugrad::cuda {
namespace {

char* address(const plugrad_place& place) { return reinterpret_cast<char*>(place.buffer) + place.offset; }

bool is_known(uint32_t kind) { return kind == PLUGRAD_HOST || kind == PLUGRAD_PINNED || kind == PLUGRAD_DEVICE; }

void demand_places(const plugrad_copy& copy) {
  if (!is_known(copy.to.kind) || !is_known(copy.from.kind))
    throw BackendError(PLUGRAD_UNSUPPORTED, "a copy's place has an unknown kind");
  if (copy.to.kind != PLUGRAD_DEVICE && copy.from.kind != PLUGRAD_DEVICE)
    throw BackendError(PLUGRAD_UNSUPPORTED, "a copy needs device memory as source or target");
}

}  // namespace

// Requests peer access once and ignores a refusal: the driver then copies between the two devices through host memory, and
// nothing else changes.
void CudaBackend::enable_peer(int peer) {
  if (peer >= kPeers || peers_[peer].exchange(true)) return;
  int can = 0;
  if (cudaDeviceCanAccessPeer(&can, index_, peer) == cudaSuccess && can) cudaDeviceEnablePeerAccess(peer, 0);
  cudaGetLastError();
}

void CudaBackend::copy_between(const plugrad_copy& copy, cudaStream_t stream) {
  const int to = backend_of<CudaBackend>(copy.to.device).index(), from = backend_of<CudaBackend>(copy.from.device).index();
  if (to == from) {
    check(cudaMemcpyAsync(address(copy.to), address(copy.from), copy.bytes, cudaMemcpyDeviceToDevice, stream), "copy");
    return;
  }
  enable_peer(to == index_ ? from : to);
  check(cudaMemcpyPeerAsync(address(copy.to), to, address(copy.from), from, copy.bytes, stream), "copy between devices");
}

// The number counts as submitted once the whole copy is; for a download to plain memory, once the bytes have arrived.
void CudaBackend::copy(Stream* stream, const plugrad_copy& copy) {
  demand_places(copy);
  auto& s = static_cast<CudaStream&>(*stream);
  s.demand_sound();
  const CallScope scope(index_);
  char *const to = address(copy.to), *const from = address(copy.from);
  if (copy.from.kind == PLUGRAD_HOST) s.upload(to, from, copy.bytes);
  else if (copy.to.kind == PLUGRAD_HOST) s.download(to, from, copy.bytes);
  else if (copy.from.kind == PLUGRAD_PINNED)
    check(cudaMemcpyAsync(to, from, copy.bytes, cudaMemcpyHostToDevice, s.handle()), "upload");
  else if (copy.to.kind == PLUGRAD_PINNED)
    check(cudaMemcpyAsync(to, from, copy.bytes, cudaMemcpyDeviceToHost, s.handle()), "download");
  else copy_between(copy, s.handle());
  s.submitted(copy.number);
}

}  // namespace plugrad::cuda
