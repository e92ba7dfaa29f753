#include <backends/cuda/probe.hpp>

#include <backends/cuda/error.hpp>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace plugrad::cuda {
namespace {

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

// CUDA returns the same error for a missing driver and for an outdated driver.
std::string why_driver(int driver) {
  int runtime = 0;
  cudaRuntimeGetVersion(&runtime);
  if (!driver) return "no NVIDIA driver is installed (there is no libcuda.so.1)";
  return "the NVIDIA driver knows CUDA up to " + version_text(driver) + ", this plugin needs " + version_text(runtime) +
         ": update the driver";
}

std::string why_none(cudaError_t error) {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  cudaGetLastError();
  if (error == cudaErrorInsufficientDriver) return why_driver(driver);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string hint = visible ? std::string("; CUDA_VISIBLE_DEVICES is '") + visible + "'" : std::string();
  if (error == cudaSuccess || error == cudaErrorNoDevice) return "the NVIDIA driver finds no GPU" + hint;
  return "the NVIDIA driver failed to start: " + describe(error) + hint;
}

int numa_node(std::string pci_address) {
  for (char& c : pci_address) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));  // as in sysfs
  int node = -1;
  std::ifstream file("/sys/bus/pci/devices/" + pci_address + "/numa_node");
  return file >> node ? node : -1;
}

// Formats the UUID as nvidia-smi does.
void write_uuid(const cudaUUID_t& uuid, char* text, size_t size) {
  const auto* b = reinterpret_cast<const unsigned char*>(uuid.bytes);
  std::snprintf(text, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
                b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

}  // namespace

DeviceCount count_devices() noexcept {
  if (was_forked()) return {0, kForked};
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaSuccess && devices > 0) return {static_cast<uint32_t>(devices), {}};
  cudaGetLastError();
  return {0, why_none(error)};
}

void describe_device(int index, plugrad_device_info& info) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  info.memory = properties.totalGlobalMem;
  info.dlpack_type = 2;
  info.dlpack_index = index;
  std::snprintf(info.name, sizeof info.name, "%.63s", properties.name);
  write_uuid(properties.uuid, info.identity, sizeof info.identity);
  char address[32] = "";
  info.numa_node = cudaDeviceGetPCIBusId(address, sizeof address, index) == cudaSuccess ? numa_node(address) : -1;
}

}  // namespace plugrad::cuda
