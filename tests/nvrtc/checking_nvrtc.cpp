// A replacement for NVRTC that compiles for the emulator: the C++ compiler makes a shared object, with the headers that the
// caller gives, the emulator's cuda_runtime.h and the C++ standard library. It refuses options that would change results.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;

// The same declarations as in nvrtc.h, which may not be installed.
using nvrtcProgram = void*;
enum nvrtcResult { NVRTC_SUCCESS = 0, NVRTC_ERROR_INVALID_OPTION = 5, NVRTC_ERROR_COMPILATION = 6 };

// Temporary folders, which are removed when the process ends.
class Folders {
 public:
  Folders() {
    std::string name = (fs::temp_directory_path() / "plugrad-nvrtc-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folders() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path fresh() const {
    static std::atomic<int> last{0};
    const fs::path made = path_ / std::to_string(++last);
    fs::create_directories(made);
    return made;
  }

 private:
  fs::path path_;
};

const Folders folders;

std::string contents(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The definitions that simt/module.hpp requires. A GPU thread copies its indices when it starts, and after other threads
// have run.
constexpr const char* kAround = R"(
#include <simt/module.hpp>
uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
namespace {
simt::Emulator emulator;
void copy_indices() {
  threadIdx = *emulator.thread, blockIdx = *emulator.block;
  blockDim = *emulator.block_size, gridDim = *emulator.grid;
}
}
namespace simt {
int barrier(int predicate, Vote vote, const char* what, Site site) {
  const int result = emulator.barrier_of(predicate, vote, what, site);
  copy_indices();
  return result;
}
uint64_t meet(Meeting meeting, unsigned mask, uint64_t value, int source, const char* what, Site site) {
  const uint64_t result = emulator.meet_of(meeting, mask, value, source, what, site);
  copy_indices();
  return result;
}
int lane() { return emulator.lane_of(); }
void* dynamic_shared() { return emulator.dynamic_shared_of(); }
void note_atomic(void* address, size_t bytes) { emulator.note_atomic_of(address, bytes); }
void note_sum(void* address, size_t bytes, double magnitude) { emulator.note_sum_of(address, bytes, magnitude); }
void fence() { emulator.fence_of(); }
void trap(const char* what, Site site) { emulator.trap_of(what, site); __builtin_unreachable(); }
}
namespace {
template <class P> struct Started {
  void (*function)(P);
  P parameter;
  static void call(const void* frame) {
    copy_indices();
    const auto* self = static_cast<const Started*>(frame);
    self->function(self->parameter);
  }
};
template <class P>
void make(simt::Kernel* kernel, const char* name, void (*function)(P), void** arguments, const simt::Emulator& its) {
  emulator = its;
  kernel->name = name;
  kernel->signature = simt::signature_of<P>();
  kernel->function = reinterpret_cast<const void*>(function);
  kernel->call = Started<std::remove_const_t<P>>::call;
  using Frame = Started<std::remove_const_t<P>>;
  kernel->frame = std::make_shared<const Frame>(Frame{function, *static_cast<const P*>(arguments[0])});
}
}  // namespace
)";

struct Program {
  std::string source;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string log, code;

  // Returns the path of the shared object, or an empty text.
  std::string compiled() {
    const fs::path folder = folders.fresh();
    for (const auto& [name, text] : headers) {
      if (name.find('/') == std::string::npos || name.ends_with("nvrtc_std.hpp")) continue;  // the C++ library has these
      fs::create_directories((folder / name).parent_path());
      std::ofstream(folder / name) << text;
    }
    std::ofstream(folder / "program.cpp") << source << kAround << kernels();
    const fs::path made = folder / "program.so", messages = folder / "messages";
    // No builtins: a value that the compiler folds, such as the erf of a constant, may have other bits than the library's
    // result. Hidden visibility: shared memory is a static variable of a template; otherwise all programs of a process would
    // share it.
    const std::string command = PLUGRAD_NVRTC_COMPILER
                                " -std=c++20 -O1 -fno-builtin -fPIC -shared -ffp-contract=off -w"
                                " -fvisibility=hidden"
                                " -I" PLUGRAD_NVRTC_INCLUDE " -I" +
                                folder.string() + " -o " + made.string() + " " + (folder / "program.cpp").string() + " 2>" +
                                messages.string();
    const bool is_made = std::system(command.c_str()) == 0;
    log = contents(messages);
    return is_made ? made.string() : std::string();
  }

  std::string kernels() const {
    static const std::regex kKernel(R"re((\w+)\(const __grid_constant__)re");
    std::string text;
    for (std::sregex_iterator at(source.begin(), source.end(), kKernel), end; at != end; ++at) {
      const std::string name = (*at)[1];
      text += "extern \"C\" __attribute__((visibility(\"default\"))) void simt_kernel_" + name +
              "(simt::Kernel* kernel, void** arguments, const simt::Emulator& its) {\n  make(kernel, \"" + name +
              "\", plugrad::cuda::" + name + ", arguments, its);\n}\n";
    }
    return text;
  }
};

Program& of(nvrtcProgram handle) { return *static_cast<Program*>(handle); }

nvrtcResult copy_out(const std::string& text, char* to) {
  std::memcpy(to, text.c_str(), text.size() + 1);
  return NVRTC_SUCCESS;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char*, int count,
                                      const char* const* texts, const char* const* names) {
  auto* made = new Program{source, {}, {}, {}};
  for (int i = 0; i < count; ++i) made->headers.emplace_back(names[i], texts[i]);
  *program = made;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete &of(*program);
  *program = nullptr;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
  const std::set<std::string> given(options, options + count);
  for (const char* needed : {"--std=c++20", "--fmad=false", "--gpu-architecture=sm_90"})
    if (!given.contains(needed)) {
      of(program).log = std::string("without ") + needed;
      return NVRTC_ERROR_INVALID_OPTION;
    }
  of(program).code = of(program).compiled();
  return of(program).code.empty() ? NVRTC_ERROR_COMPILATION : NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* size) {
  *size = of(program).log.size() + 1;
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) { return copy_out(of(program).log, log); }
EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* size) {
  *size = of(program).code.size() + 1;
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* code) { return copy_out(of(program).code, code); }
