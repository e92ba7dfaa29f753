// Prints the contract as data, for authors who write in other languages than C and C++:
//   plugrad-abi-data layout|ops|philox
// The JSON files beside this one are its output.
#include <plugrad/sdk/layout.hpp>
#include <plugrad/sdk/loops.h>
#include <plugrad/sdk/ops.hpp>
#include <plugrad/sdk/queue.h>
#include <sdk/conformance/philox.hpp>

#include <nlohmann/json.hpp>

#include <bit>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <type_traits>

namespace {

using Json = nlohmann::ordered_json;

std::string hex(uint64_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%0*llx", digits, static_cast<unsigned long long>(value));
  return text;
}

// --- Types. A struct of the contract has its name without the prefix.

template <typename T> struct Named {
  static std::string type() {
    static_assert(std::is_arithmetic_v<T>);
    if (std::is_same_v<T, char>) return "char";
    const char* kind = std::is_floating_point_v<T> ? "f" : std::is_signed_v<T> ? "i" : "u";
    return kind + std::to_string(8 * sizeof(T));
  }
};
template <> struct Named<void> {
  static std::string type() { return "void"; }
};
#define STRUCT(name)                            \
  template <> struct Named<plugrad_##name> {    \
    static std::string type() { return #name; } \
  };
STRUCT(device)
STRUCT(stream) STRUCT(buffer) STRUCT(view) STRUCT(op) STRUCT(axis) STRUCT(sort) STRUCT(convolution) STRUCT(pool) STRUCT(norm)
    STRUCT(scan) STRUCT(fft) STRUCT(attention) STRUCT(sgd) STRUCT(adam) STRUCT(kernel) STRUCT(signature) STRUCT(place)
    STRUCT(copy)
        STRUCT(failure) STRUCT(option) STRUCT(options) STRUCT(device_info) STRUCT(host) STRUCT(backend)
#undef STRUCT
            template <typename T>
            struct Named<const T> {
  static std::string type() { return "const " + Named<T>::type(); }
};
template <typename T> struct Named<T*> {
  static std::string type() { return Named<T>::type() + "*"; }
};
template <typename T> struct Named<T* const> {
  static std::string type() { return Named<T>::type() + "* const"; }
};

template <> struct Named<plugrad_queue_driver> {  // of queue.h
  static std::string type() { return "queue_driver"; }
};

// The properties that describe a field's type.
template <typename T> struct Described {
  static Json type() { return {{"type", Named<T>::type()}}; }
};
template <typename T, size_t n> struct Described<T[n]> {
  static Json type() { return {{"type", Named<T>::type()}, {"count", n}}; }
};
template <typename R, typename... A> struct Described<R (*)(A...)> {
  static Json type() {
    return {{"type", "function"}, {"returns", Named<R>::type()}, {"parameters", Json::array({Named<A>::type()...})}};
  }
};

// --- layout.json

template <typename Struct, typename Field>
void add_field(Json& structs, const char* type, const char* field, size_t offset) {
  if (structs.empty() || structs.back()["name"] != type)
    structs.push_back({{"name", type}, {"size", sizeof(Struct)}, {"alignment", alignof(Struct)}, {"fields", Json::array()}});
  Json row{{"name", field}, {"offset", offset}, {"size", sizeof(Field)}};
  row.update(Described<Field>::type());
  structs.back()["fields"].push_back(row);
}

Json structs() {
  Json all = Json::array();
#define PLUGRAD_FIELD(type, field) \
  add_field<plugrad_##type, decltype(plugrad_##type::field)>(all, #type, #field, offsetof(plugrad_##type, field));
#include <plugrad/sdk/fields.def>
#undef PLUGRAD_FIELD
  return all;
}

// The functions of the SDK: the entry, which a plugin exports, and the functions of libplugrad-loops.a.
Json functions() {
  Json all;
#define F(name) all[#name] = Described<decltype(&name)>::type();
  F(plugrad_backend_v0)
  F(plugrad_loops_open) F(plugrad_loops_resolve) F(plugrad_queues_open) F(plugrad_queues_driver) F(plugrad_queues_resolve)
  F(plugrad_queues_run) F(plugrad_queues_alloc) F(plugrad_queues_free) F(plugrad_queues_copy)
  F(plugrad_queues_stream_create) F(plugrad_queues_completed) F(plugrad_queues_wait) F(plugrad_queues_sync)
#undef F
  for (Json& each : all) each.erase("type");
  return all;
}

// The enumerations of abi.h, by what their values are.
Json constants() {
  Json all;
  const char* group = "";
#define C(name) all[group][#name] = static_cast<int64_t>(PLUGRAD_##name);
  group = "abi";
  C(ABI_MAJOR) C(REVISION) C(MAX_RANK) C(MAX_OPERANDS) C(PRIVATE_OPS) group = "status";
  C(OK)
  C(INVALID) C(UNSUPPORTED) C(OUT_OF_MEMORY) C(INDEX_ERROR) C(DEVICE_ERROR) C(DEVICE_LOST) C(INTERNAL) group = "layout";
  C(STRIDED) C(BROADCAST) C(NEGATIVE) C(UNALIGNED) C(WIDE_INDEX) C(IMMEDIATE) C(ALL_LAYOUTS) group = "flags";
  C(ACCUMULATE) C(DETERMINISTIC) C(TF32) group = "capabilities";
  C(HOST_MEM) C(ASYNC) C(FLUSHES_DENORMALS) group = "unnamed_use";
  C(ONLY_BY_NAME) C(AS_FALLBACK) C(AS_DEFAULT) group = "place";
  C(HOST) C(PINNED) C(DEVICE) group = "role";
  C(COMPUTE_STREAM) C(COPY_STREAM) group = "fft";
  C(FFT_FORWARD) C(FFT_BACKWARD) C(FFT_REAL) C(FFT_INVERSE_REAL) group = "level";
  C(DEBUG)
  C(INFO) C(WARNING) C(ERROR)
#undef C
      return all;
}

Json layout() {
  Json hashes = Json::array();
  for (const uint64_t hash : plugrad_layouts) hashes.push_back(hex(hash, 16));
  return {
      {"about",
       "The structs and constants of plugrad/sdk/abi.h; offsets and sizes are in bytes. The struct plugrad_x is named x, "
       "and the constant PLUGRAD_X is named X."},
      {"entry", "plugrad_backend_v0"},
      {"file", "libplugrad-backend-NAME.so"},
      {"hash_about",
       "FNV-1a in 64 bits: h = 0xcbf29ce484222325. For each field of the structs below, in their order: for each byte b "
       "of the text struct.field, h = (h ^ b) * 0x100000001b3; then h = (h ^ offset) * 0x100000001b3; then "
       "h = (h ^ size) * 0x100000001b3. There is one hash for each revision."},
      {"hashes", hashes},
      {"constants", constants()},
      {"structs", structs()},
      {"functions_about",
       "plugrad_backend_v0 is the entry, which a plugin exports. The other functions are in libplugrad-loops.a; "
       "plugrad/sdk/loops.h and queue.h explain them, and queue.h has the struct queue_driver."},
      {"functions", functions()}};
}

// --- ops.json

Json dtypes() {
  using namespace plugrad;
  Json all = Json::array();
#define PLUGRAD_DTYPE(name, id, enumerator, label, type, kind, digits, exponent, accumulator, dlpack) \
  all.push_back({{"name", #name},                                                                     \
                 {"id", id},                                                                          \
                 {"size", element_size(id)},                                                          \
                 {"kind", #kind},                                                                     \
                 {"digits", digits},                                                                  \
                 {"exponent", exponent},                                                              \
                 {"accumulator", #accumulator},                                                       \
                 {"dlpack", dlpack}});
#include <plugrad/sdk/dtypes.def>
#undef PLUGRAD_DTYPE
  return all;
}

Json ops() {
  Json all = Json::array();
#define PLUGRAD_OP(name, id, shape, tier, operands, ulps, gradient, definition) \
  all.push_back({{"name", #name},                                               \
                 {"id", id},                                                    \
                 {"shape", #shape},                                             \
                 {"tier", tier},                                                \
                 {"operands", operands},                                        \
                 {"ulps", ulps},                                                \
                 {"gradient", #gradient},                                       \
                 {"definition", definition}});
#include <plugrad/sdk/ops.def>
#undef PLUGRAD_OP
  for (Json& op : all)
    if (op["gradient"] == "NONE") op["gradient"] = nullptr;
  return all;
}

// --- philox.json

using plugrad::conformance::philox;

template <typename Words> Json words(const Words& all) {
  Json texts = Json::array();
  for (const uint32_t word : all) texts.push_back(hex(word, 8));
  return texts;
}

Json block(plugrad::conformance::PhiloxCounter counter, plugrad::conformance::PhiloxKey key) {
  return {{"counter", words(counter)}, {"key", words(key)}, {"words", words(philox(counter, key))}};
}

Json uniform(uint64_t seed, uint64_t offset) {
  Json f32 = Json::array(), f64 = Json::array();
  for (uint64_t i = 0; i < 6; ++i) {
    const auto counted = [&](uint64_t n) {
      const uint64_t c = offset + n;
      return philox({static_cast<uint32_t>(c), static_cast<uint32_t>(c >> 32), 0, 0},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    };
    const auto pair = counted(i / 2);
    const uint64_t both = uint64_t{pair[2 * (i % 2) + 1]} << 32 | pair[2 * (i % 2)];
    f32.push_back(hex(std::bit_cast<uint32_t>(static_cast<float>(counted(i / 4)[i % 4] >> 8) * 0x1p-24f), 8));
    f64.push_back(hex(std::bit_cast<uint64_t>(static_cast<double>(both >> 11) * 0x1p-53), 16));
  }
  return {{"seed", hex(seed, 16)}, {"offset", hex(offset, 16)}, {"f32", f32}, {"f64", f64}};
}

Json random_numbers() {
  constexpr uint32_t kAll = 0xffffffff;
  return {
      {"about",
       "Test vectors of Philox 4x32-10: Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC11. The first "
       "three blocks are the known answers that Random123 publishes."},
      {"rounds", 10},
      {"multipliers", {"0xd2511f53", "0xcd9e8d57"}},
      {"key_increments", {"0x9e3779b9", "0xbb67ae85"}},
      {"blocks",
       {block({0, 0, 0, 0}, {0, 0}), block({kAll, kAll, kAll, kAll}, {kAll, kAll}),
        block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}), block({1, 0, 0, 0}, {7, 0}),
        block({0, 1, 0, 0}, {0, 1})}},
      {"uniform_about",
       "The bits of the first six elements of UNIFORM; ops.md says which words make an element, and how NORMAL follows."},
      {"uniform",
       {uniform(0, 0), uniform(42, 0), uniform(0x123456789abcdef0, 3), uniform(~uint64_t{0}, 0xfffffffe),
        uniform(1, ~uint64_t{0})}}};
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view what = count == 2 ? arguments[1] : "";
  if (what != "layout" && what != "ops" && what != "philox") {
    std::cerr << "usage: plugrad-abi-data layout|ops|philox\n";
    return 2;
  }
  const Json data = what == "layout" ? layout()
                    : what == "ops"  ? Json{{"about",
                                             "The tables of plugrad/sdk/ops.def and dtypes.def, which explain the columns. "
                                              "ops.md states the exact semantics."},
                                           {"dtypes", dtypes()},
                                           {"ops", ops()}}
                                     : random_numbers();
  std::cout << data.dump(1) << "\n";
  return std::cout.flush() ? 0 : 1;
}
