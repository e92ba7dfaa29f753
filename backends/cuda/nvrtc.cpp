#include <backends/cuda/nvrtc.hpp>

#include <backends/cuda/library.hpp>

#include <array>
#include <csignal>
#include <cstring>
#include <mutex>

// A build, such as the emulator's, may fix the file to open as NVRTC.
#ifndef PLUGRAD_CUDA_NVRTC
#define PLUGRAD_CUDA_NVRTC nullptr
#endif

namespace plugrad::cuda {
namespace {

const LibraryPlaces kPlaces{
    "PLUGRAD_NVRTC",
    PLUGRAD_CUDA_NVRTC,
    {"libnvrtc.so.13", "libnvrtc.so.12"},
    {"nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cuda_nvrtc/lib/libnvrtc.so.13", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"}};

// The single kernels are compiled without fused multiplications, and fusions have their bits. Int128: divider.hpp.
constexpr const char* kOptions[] = {"--std=c++20", "--fmad=false", "-default-device", "--device-int128", "-w"};

}  // namespace

std::unique_ptr<const Nvrtc> Nvrtc::open(std::string& why) {
  why = "no NVRTC; looked for";
  for (const std::string& name : candidates(kPlaces)) {
    why += " " + name;
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) continue;
    auto found = std::make_unique<Nvrtc>();
    const auto find = [library](const char* function, auto& into) { return find_function(library, function, into); };
    Result (*version)(int*, int*) = nullptr;
    int major = 0, minor = 0;
    if (find("nvrtcVersion", version) && !version(&major, &minor) && find("nvrtcCreateProgram", found->create_) &&
        find("nvrtcDestroyProgram", found->destroy_) && find("nvrtcCompileProgram", found->compile_) &&
        find("nvrtcGetProgramLogSize", found->log_size_) && find("nvrtcGetProgramLog", found->log_) &&
        find("nvrtcGetCUBINSize", found->code_size_) && find("nvrtcGetCUBIN", found->code_)) {
      found->version_ = std::to_string(major) + "." + std::to_string(minor);
      return found;
    }
    why += " (lacks a function)";
  }
  why +=
      ". The calls of compiled steps run singly, which takes longer. Install NVRTC with `pip install nvidia-cuda-nvrtc` or "
      "the CUDA toolkit, or set PLUGRAD_NVRTC to the absolute path of libnvrtc.so.13 or .12";
  return nullptr;
}

// While NVRTC compiles, it handles SIGINT and further signals itself. Then it restores the process's handlers, but by
// signal(), and so loses their flags and masks.
class KeptHandlers {
 public:
  KeptHandlers() {
    for (int i = 1; i < kSignals; ++i) sigaction(i, nullptr, &kept_[static_cast<size_t>(i)]);
  }
  ~KeptHandlers() {
    for (int i = 1; i < kSignals; ++i) {
      const struct sigaction& kept = kept_[static_cast<size_t>(i)];
      struct sigaction now{};
      if (sigaction(i, nullptr, &now) || now.sa_handler != kept.sa_handler) continue;
      if (now.sa_flags != kept.sa_flags || std::memcmp(&now.sa_mask, &kept.sa_mask, kMaskBytes))
        sigaction(i, &kept, nullptr);
    }
  }
  KeptHandlers(const KeptHandlers&) = delete;
  KeptHandlers& operator=(const KeptHandlers&) = delete;

 private:
  static constexpr int kSignals = 32;
  static constexpr size_t kMaskBytes = 8;  // the kernel's bytes of a mask; the C library leaves the rest unchanged
  std::array<struct sigaction, kSignals> kept_{};
};

// A source during its compilation.
class Nvrtc::Unit {
 public:
  Unit(const Nvrtc& nvrtc, const std::string& source) : nvrtc_(nvrtc) {
    std::vector<const char*> names, texts;
    for (const Header& each : fusion_headers()) {
      names.push_back(each.name);
      texts.push_back(each.text);
    }
    const int count = static_cast<int>(names.size());
    result_ = nvrtc.create_(&handle_, source.c_str(), "fusion.cu", count, texts.data(), names.data());
  }
  ~Unit() {
    if (handle_) nvrtc_.destroy_(&handle_);
  }
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  bool compile(const std::string& architecture) {
    const std::string target = "--gpu-architecture=" + architecture;
    std::vector<const char*> options(std::begin(kOptions), std::end(kOptions));
    options.push_back(target.c_str());
    if (!result_) result_ = nvrtc_.compile_(handle_, static_cast<int>(options.size()), options.data());
    return !result_;
  }
  std::vector<char> code() const { return text(nvrtc_.code_size_, nvrtc_.code_); }
  std::string messages() const {
    const std::vector<char> log = handle_ ? text(nvrtc_.log_size_, nvrtc_.log_) : std::vector<char>();
    return "NVRTC returned " + std::to_string(result_) + ": " + (log.empty() ? "" : log.data());  // it ends with a 0
  }

 private:
  std::vector<char> text(Result (*size_of)(Handle, size_t*), Result (*copy)(Handle, char*)) const {
    size_t size = 0;
    if (size_of(handle_, &size)) return {};
    std::vector<char> bytes(size);
    if (copy(handle_, bytes.data())) return {};
    return bytes;
  }

  const Nvrtc& nvrtc_;
  Handle handle_ = nullptr;
  Result result_ = 0;
};

std::vector<char> Nvrtc::compile(const std::string& source, const std::string& architecture, std::string& why) const {
  static std::mutex one_at_a_time;  // or a second compilation would keep the handlers of the first
  const std::lock_guard lock(one_at_a_time);
  const KeptHandlers handlers;
  Unit unit(*this, source);
  std::vector<char> code;
  if (unit.compile(architecture)) code = unit.code();
  if (code.empty()) why = unit.messages();
  return code;
}

}  // namespace plugrad::cuda
