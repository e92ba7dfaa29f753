// The library is opened at run time, and the few functions and structs in use are declared here, by the PMIx Standard 4:
// https://pmix.github.io/standard
#include <core/distributed/pmix.hpp>

#include <core/runtime/plugins/platform.hpp>
#include <plugrad/runtime/error.hpp>

#include <dlfcn.h>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

namespace plugrad::distributed {
namespace {
struct Proc {
  char job[256];
  uint32_t rank;
};
struct Value {
  uint16_t type;
  union {
    char* string;
    int integer;
    char space[64];  // the library's union is smaller
  };
};
struct Info {
  char key[512];
  uint32_t flags;
  Value value;
};
constexpr uint16_t kString = 3, kInt = 6;
constexpr int kNotFound = -46;
constexpr uint8_t kGlobal = 3;  // a scope: for all ranks
constexpr const char* kKey = "plugrad.store";

// The library's functions. It stays loaded: Open MPI uses it too.
struct Pmix {
  int (*init)(Proc*, Info*, size_t) = nullptr;
  int (*put)(uint8_t, const char*, Value*) = nullptr;
  int (*commit)() = nullptr;
  int (*get)(const Proc*, const char*, const Info*, size_t, Value**) = nullptr;
  int (*finalize)(const Info*, size_t) = nullptr;
  const char* (*error_string)(int) = nullptr;
};
int (*connected)(const Info*, size_t) = nullptr;  // finalize, from init on

template <class F> bool load(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

Pmix open_pmix() {
  Pmix all;
  void* const library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
  const bool is_whole = library && load(library, "PMIx_Init", all.init) && load(library, "PMIx_Put", all.put) &&
                        load(library, "PMIx_Commit", all.commit) && load(library, "PMIx_Get", all.get) &&
                        load(library, "PMIx_Finalize", all.finalize) && load(library, "PMIx_Error_string", all.error_string);
  if (!is_whole)
    throw Error(Code::invalid,
                "[init_process_group] the launcher offers PMIx, but libpmix.so.2 cannot be loaded: install it "
                "(Debian: libpmix2), or set PLUGRAD_STORE or MASTER_ADDR and MASTER_PORT");
  return all;
}

void require(const Pmix& pmix, int status, const char* what) {
  if (!status) return;
  throw Error(Code::peer_lost, std::string("[init_process_group] ") + what + ": " + pmix.error_string(status));
}
}  // namespace

bool is_by_pmix() {
  const char* const job = platform::environment("PMIX_NAMESPACE");
  return job && *job;
}

std::string told_by_rank_0(int rank, const std::function<std::string()>& tell, std::chrono::milliseconds most) {
  const Pmix pmix = open_pmix();
  Proc self{};
  require(pmix, pmix.init(&self, nullptr, 0), "PMIx_Init");
  connected = pmix.finalize;
  if (rank == 0) {
    std::string text = tell();
    Value value{};
    value.type = kString;
    value.string = text.data();
    require(pmix, pmix.put(kGlobal, kKey, &value), "PMIx_Put");
    require(pmix, pmix.commit(), "PMIx_Commit");
    return text;
  }
  Proc first = self;
  first.rank = 0;
  Info timeout{};
  std::strcpy(timeout.key, "pmix.timeout");
  timeout.value.type = kInt;
  timeout.value.integer = static_cast<int>(std::max<int64_t>(most.count() / 1000, 1));
  Value* told = nullptr;
  // A server on the same machine may answer at once that there is no such key yet.
  const auto end = std::chrono::steady_clock::now() + most;
  int status = pmix.get(&first, kKey, &timeout, 1, &told);
  while (status == kNotFound && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    status = pmix.get(&first, kKey, &timeout, 1, &told);
  }
  require(pmix, status, "rank 0 does not tell where its store is (PMIx_Get)");
  const std::string text = told->string;
  std::free(told->string);
  std::free(told);
  return text;
}

void leave_pmix() {
  if (connected) std::exchange(connected, nullptr)(nullptr, 0);
}

}  // namespace plugrad::distributed
