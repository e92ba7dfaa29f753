// A plugin that does harm in one place: PLUGRAD_HOSTILE="BEHAVIOUR@PLACE". It uses the C ABI, because the SDK's classes
// catch exceptions. Otherwise it is a small backend "tiny" that fills and adds. If the place needs streams, it has streams
// whose work is complete at once.
#include <plugrad/sdk/abi.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <atomic>
#include <cfenv>
#include <clocale>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace {

std::string_view wanted() {
  const char* text = std::getenv("PLUGRAD_HOSTILE");
  return text ? text : "";
}
bool is(std::string_view behaviour, std::string_view place) {
  const std::string_view all = wanted();
  const size_t at = all.find('@');
  return at != std::string_view::npos && all.substr(0, at) == behaviour && all.substr(at + 1) == place;
}
// Returns whether a place breaks its contract in this way; only some places check it.
bool breaks(std::string_view behaviour) { return wanted() == behaviour; }

void on_signal(int) {}

std::atomic<bool> ends{false};
[[gnu::noinline]] int overflow(const volatile char* before) {
  volatile char here[4096];
  here[0] = before ? before[0] : '\0';
  return (ends ? 0 : overflow(here)) + here[0];
}

void flood(int descriptor, int lines = 256) {
  const std::string line(4096, 'x');
  for (int i = 0; i < lines; ++i)
    if (write(descriptor, line.data(), line.size()) < 0) return;
}

// Pretends to be the probe that has finished, without knowing its nonce.
void forge() {
  char record[512] = {};
  record[8] = 4;
  for (int descriptor = 3; descriptor < 10; ++descriptor)
    if (write(descriptor, record, sizeof record) < 0) continue;
  _exit(0);
}

struct Behaviour {
  const char* name;
  void (*act)();
};
const Behaviour kBehaviours[] = {
    {"abort", [] { std::abort(); }},
    {"segfault", [] { std::strcpy(std::getenv("PLUGRAD_NOTHING_HERE"), "x"); }},
    {"null_call", [] { reinterpret_cast<void (*)()>(std::getenv("PLUGRAD_NOTHING_HERE"))(); }},
    {"illegal", [] { std::raise(SIGILL); }},
    {"divide", [] { std::raise(SIGFPE); }},
    {"kill", [] { kill(getpid(), SIGKILL); }},
    {"terminate", [] { kill(getpid(), SIGTERM); }},
    {"pipe", [] { std::raise(SIGPIPE); }},
    {"alarm", [] { std::raise(SIGALRM); }},
    {"stop", [] { kill(getpid(), SIGSTOP); }},
    {"overflow", [] { overflow(nullptr); }},
    {"exit0", [] { std::exit(0); }},
    {"exit3", [] { std::exit(3); }},
    {"_exit0", [] { _exit(0); }},
    {"quick_exit", [] { std::quick_exit(0); }},
    {"forge", forge},
    {"loop",
     [] {
       for (std::atomic<int> i{0};; i.fetch_add(1)) {
       }
     }},
    {"sleep",
     [] {
       for (;;) pause();
     }},
    {"deaf_loop",
     [] {
       sigset_t all;
       sigfillset(&all);
       sigprocmask(SIG_SETMASK, &all, nullptr);
       for (int i = 1; i < 65; ++i) std::signal(i, SIG_IGN);
       for (;;) pause();
     }},
    {"throw_int", [] { throw 42; }},
    {"throw_error", [] { throw std::runtime_error("the machine is on fire"); }},
    {"throw_memory", [] { throw std::bad_alloc(); }},
    {"flood_stdout", [] { flood(1); }},
    {"flood_stderr", [] { flood(2); }},
    {"flood_pipe",
     [] {  // the pipe to the core, if there is one
       struct stat about;
       if (fstat(3, &about) == 0 && S_ISFIFO(about.st_mode)) flood(3, 1 << 14);  // 64 MB
     }},
    {"orphan",
     [] {  // leaves a process behind that keeps all descriptors
       if (fork() == 0) {
         for (int i = 0; i < 30; ++i) usleep(100'000);
         _exit(0);
       }
     }},
    {"fork", [] { fork(); }},  // and returns in both processes
    {"crash_later",
     [] {
       std::thread([] {
         usleep(1000);
         std::abort();
       }).detach();
       usleep(200'000);
     }},
    {"rounding", [] { std::fesetround(FE_UPWARD); }},
    {"flush",
     [] {
#if defined(__x86_64__)
       __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);  // as crtfastm.o does, which -ffast-math links
#else
       asm volatile("msr fpcr, %0" ::"r"(uint64_t{1} << 24));
#endif
     }},
    {"handler", [] { std::signal(SIGSEGV, on_signal); }},
    {"interrupt", [] { std::signal(SIGINT, SIG_IGN); }},
    {"mask",
     [] {
       sigset_t some;
       sigemptyset(&some);
       sigaddset(&some, SIGTERM);
       sigprocmask(SIG_BLOCK, &some, nullptr);
     }},
    {"umask", [] { umask(0777); }},
    {"locale", [] { std::setlocale(LC_ALL, "C.UTF-8"); }},
    {"directory",
     [] {
       if (chdir("/")) _exit(9);
     }},
    {"timer",
     [] {
       const struct itimerval soon{{0, 0}, {3600, 0}};
       setitimer(ITIMER_PROF, &soon, nullptr);
     }},
    {"limit",
     [] {
       const struct rlimit small{1 << 20, RLIM_INFINITY};
       setrlimit(RLIMIT_FSIZE, &small);
     }},
    {"input", [] { close(0); }},
};

void act(std::string_view place) {
  for (const Behaviour& each : kBehaviours)
    if (is(each.name, place)) each.act();
}

struct AtLoad {
  AtLoad() { act("constructor"); }
  ~AtLoad() { act("destructor"); }
} at_load;

bool has_streams() {
  for (const char* place : {"stream_create", "completed", "wait", "sync", "stream_copy", "stream_run"})
    if (wanted().ends_with(std::string("@") + place)) return true;
  return false;
}

// --- The backend.

const plugrad_host* core;

template <class T> T immediate(const plugrad_view& v) {
  double value;
  std::memcpy(&value, &v.offset, sizeof value);
  return static_cast<T>(value);
}
float* data(const plugrad_view& v) { return reinterpret_cast<float*>(reinterpret_cast<char*>(v.buffer) + v.offset); }

std::atomic<uint64_t>& last(plugrad_stream* stream) { return *reinterpret_cast<std::atomic<uint64_t>*>(stream); }

plugrad_status run(const plugrad_kernel*, plugrad_stream* stream, const plugrad_op* op) {
  act(stream ? "stream_run" : "run");
  if (stream) last(stream) = op->number;
  if (breaks("status_99")) return 99;
  const plugrad_view& out = *op->views[0];
  for (int64_t i = 0; i < out.count; ++i)
    data(out)[i] =
        op->opcode == PLUGRAD_OP_FILL ? immediate<float>(*op->views[1]) : data(*op->views[1])[i] + data(*op->views[2])[i];
  return PLUGRAD_OK;
}
uint64_t workspace(const plugrad_kernel*, const plugrad_op*) {
  act("workspace");
  if (breaks("workspace_unknown")) return UINT64_MAX;
  return breaks("workspace_huge") ? UINT64_MAX - 255 : breaks("workspace_odd") ? (1ull << 60) : 64;
}

plugrad_status count(const plugrad_host* host, uint32_t* devices) {
  core = host;
  act("count");
  *devices = breaks("count_huge") ? ~0u : breaks("count_million") ? 1'000'000 : 1;
  return breaks("count_status") ? 99 : PLUGRAD_OK;
}

plugrad_status open_device(const plugrad_host*, uint32_t, const plugrad_options*, plugrad_device** device,
                           plugrad_device_info* info) {
  act("open");
  static int token;
  *device = breaks("null_device") ? nullptr : reinterpret_cast<plugrad_device*>(&token);
  info->capabilities = PLUGRAD_HOST_MEM | (has_streams() ? PLUGRAD_ASYNC : 0);
  if (breaks("capabilities_device")) info->capabilities = 0;
  if (breaks("capabilities_async")) info->capabilities = PLUGRAD_HOST_MEM | PLUGRAD_ASYNC;
  info->alignment = breaks("alignment_huge") ? 1ull << 63 : breaks("alignment_zero") ? 0 : breaks("alignment_odd") ? 48 : 64;
  std::memset(info->name, breaks("name_endless") ? 'x' : 0, sizeof info->name);
  if (breaks("name_escape")) std::strcpy(info->name, "\033[31mred\033[0m");
  return breaks("open_status") ? -7 : PLUGRAD_OK;
}

const plugrad_kernel* resolve(plugrad_device*, const plugrad_signature* question) {
  act("resolve");
  static const bool wants_memory = wanted().ends_with("@workspace") || wanted().starts_with("workspace_");
  static const plugrad_kernel kernel{breaks("kernel_short") ? 0u : static_cast<uint32_t>(sizeof kernel), 0,
                                     breaks("null_run") ? nullptr : run, wants_memory ? workspace : nullptr};
  const uint16_t served = question->opcode == PLUGRAD_OP_FILL ? PLUGRAD_IMMEDIATE : 0;
  const bool known = question->opcode == PLUGRAD_OP_FILL || question->opcode == PLUGRAD_OP_ADD;
  return known && question->dtypes[0] == PLUGRAD_F32 && !(question->layout & ~served) ? &kernel : nullptr;
}

const void* get_extension(const char*) {
  act("get_extension");
  return nullptr;
}

plugrad_status alloc(plugrad_device*, uint64_t bytes, plugrad_buffer** buffer) {
  act("alloc");
  static char* const first = static_cast<char*>(std::aligned_alloc(64, 64 << 20));
  char* made = breaks("overlap") ? first : static_cast<char*>(std::aligned_alloc(64, bytes + 64));
  if (breaks("misaligned")) made += 4;
  *buffer = breaks("null_buffer") ? nullptr : reinterpret_cast<plugrad_buffer*>(made);
  return breaks("alloc_status") ? 12345 : PLUGRAD_OK;
}
void free_buffer(plugrad_device*, plugrad_buffer*) { act("free"); }
plugrad_status memory_info(plugrad_device*, uint64_t* free_bytes, uint64_t* total_bytes) {
  act("memory_info");
  *free_bytes = *total_bytes = 1 << 30;
  return PLUGRAD_OK;
}
plugrad_status pin(plugrad_device*, uint64_t bytes, void** address) {
  act("pin");
  *address = breaks("null_pin") ? nullptr : std::malloc(bytes);
  return PLUGRAD_OK;
}
void unpin(plugrad_device*, void* address) { std::free(address); }

plugrad_status copy(plugrad_stream* stream, const plugrad_copy* c) {
  act(stream ? "stream_copy" : "copy");
  if (stream) last(stream) = c->number;
  std::memcpy(reinterpret_cast<char*>(c->to.buffer) + c->to.offset, reinterpret_cast<char*>(c->from.buffer) + c->from.offset,
              c->bytes);
  return PLUGRAD_OK;
}
plugrad_status stream_create(plugrad_device*, uint32_t, plugrad_stream** stream) {
  act("stream_create");
  static std::atomic<uint64_t> numbers[2];
  static int used = 0;
  *stream = reinterpret_cast<plugrad_stream*>(&numbers[used++ % 2]);
  return PLUGRAD_OK;
}
plugrad_status completed(plugrad_stream* stream, uint64_t* number) {
  act("completed");
  *number = last(stream) + (breaks("ahead@completed") ? 1000 : 0);
  return breaks("behind@completed") ? 5000 : PLUGRAD_OK;
}
plugrad_status wait(plugrad_stream*, plugrad_stream*, uint64_t*) {
  act("wait");
  return PLUGRAD_OK;
}
plugrad_status sync(plugrad_stream*, plugrad_failure*) {
  act("sync");
  return PLUGRAD_OK;
}

plugrad_backend made_table() {
  plugrad_backend t{};
  t.struct_size = sizeof t;
  t.revision = PLUGRAD_REVISION;
  t.layouts = plugrad_layouts;
  t.name = breaks("name_empty")  ? ""
           : breaks("name_path") ? "../tiny"
           : breaks("name_long") ? "a2345678901234567890123456789012345678901234567890123456789012345"
                                 : "tiny";
  t.version = breaks("version_escape") ? "\033[2J1.0" : "1.0";
  t.count = breaks("null_count") ? nullptr : count;
  t.open = open_device;
  t.resolve = breaks("null_resolve") ? nullptr : resolve;
  t.get_extension = get_extension;
  t.alloc = breaks("null_alloc") ? nullptr : alloc;
  t.free = free_buffer;
  t.memory_info = memory_info;
  t.pin = pin;
  t.unpin = unpin;
  t.copy = breaks("null_copy") ? nullptr : copy;
  if (has_streams()) {
    t.stream_create = stream_create;
    t.completed = completed;
    t.wait = wait;
    t.sync = sync;
  }
  return t;
}

}  // namespace

extern "C" PLUGRAD_EXPORT const plugrad_backend* plugrad_backend_v0(const plugrad_host*) {
  act("entry");
  if (breaks("null_table")) return nullptr;
  if (breaks("wild_table")) return reinterpret_cast<const plugrad_backend*>(0x10);
  static const plugrad_backend table = made_table();
  return &table;
}
