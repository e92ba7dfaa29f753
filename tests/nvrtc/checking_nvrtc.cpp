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

// As nvrtc.h has them, which need not be there.
using nvrtcProgram = void*;
enum nvrtcResult { NVRTC_SUCCESS = 0, NVRTC_ERROR_INVALID_OPTION = 5, NVRTC_ERROR_COMPILATION = 6 };

// Removed when the process ends.
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

// What simt/module.hpp asks for. A GPU thread first copies its indices.
constexpr const char* kAround = R"(
#include <simt/module.hpp>
uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
namespace {
simt::Indices indices_of_emulator;
template <class P> struct Started {
  void (*function)(P);
  P parameter;
  static void call(const void* frame) {
    threadIdx = *indices_of_emulator.thread, blockIdx = *indices_of_emulator.block;
    blockDim = *indices_of_emulator.block_size, gridDim = *indices_of_emulator.grid;
    const auto* self = static_cast<const Started*>(frame);
    self->function(self->parameter);
  }
};
template <class P>
void make(simt::Kernel* kernel, const char* name, void (*function)(P), void** arguments, const simt::Indices& indices) {
  indices_of_emulator = indices;
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
    // Without builtins: what a compiler folds, such as the erf of a constant, need not have the bits of the library.
    const std::string command = PLUGRAD_NVRTC_COMPILER " -std=c++20 -O1 -fno-builtin -fPIC -shared -ffp-contract=off -w"
                                " -I" PLUGRAD_NVRTC_INCLUDE " -I" + folder.string() + " -o " + made.string() + " " +
                                (folder / "program.cpp").string() + " 2>" + messages.string();
    const bool is_made = std::system(command.c_str()) == 0;
    log = contents(messages);
    return is_made ? made.string() : std::string();
  }

  std::string kernels() const {
    static const std::regex kKernel(R"re((\w+)\(const __grid_constant__)re");
    std::string text;
    for (std::sregex_iterator at(source.begin(), source.end(), kKernel), end; at != end; ++at) {
      const std::string name = (*at)[1];
      text += "extern \"C\" void simt_kernel_" + name +
              "(simt::Kernel* kernel, void** arguments, const simt::Indices& indices) {\n  make(kernel, \"" + name +
              "\", plugrad::cuda::" + name + ", arguments, indices);\n}\n";
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
