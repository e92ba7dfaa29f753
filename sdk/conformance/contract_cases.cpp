// The rules of abi.h that do not need a kernel.
#include <sdk/conformance/session.hpp>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace plugrad::conformance {
namespace {

void check_table(Session& session, Tally& tally) {
  const Plugin& plugin = session.plugin;
  for (int call = 0; call < 3; ++call) {
    const plugrad_backend* again = plugin.entry(session.host);
    tally.check(again == plugin.table,
                "the entry returns a different table on a second call; it must return one static table");
    tally.check(again && !std::memcmp(again, &plugin.first_seen, sizeof *again),
                "the table changed since the first call; it must be constant");
  }
  const plugrad_backend& table = *plugin.table;
  tally.check(table.struct_size >= sizeof(plugrad_backend) && table.struct_size % 8 == 0,
              "the table's struct_size is " + std::to_string(table.struct_size) + ", expected a multiple of 8 from " +
                  std::to_string(sizeof(plugrad_backend)));
  tally.check(table.version != nullptr, "the version is null; return an empty string if there is none");
}

void check_name(Session& session, Tally& tally) {
  const char* name = session.plugin.table->name;
  if (!tally.check(name, "the name is null")) return;
  const std::string_view text = name;
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const bool good = !text.empty() && lower(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return lower(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  tally.check(good, "the name '" + std::string(text) + "' does not match [a-z][a-z0-9_-]*");
}

void check_exports(Session& session, Tally& tally) {
  if (session.plugin.exports.empty()) return tally.skip("the plugin is linked in, so no file exports symbols");
  for (const std::string& symbol : session.plugin.exports)
    tally.check(symbol == "plugrad_backend_v0",
                "exports " + symbol + " besides plugrad_backend_v0; hide it (-fvisibility=hidden and the SDK's plugin.map)");
}

void check_entries(Session& session, Tally& tally) {
  const plugrad_backend& t = *session.plugin.table;
  const bool async = session.device.async(), host_memory = session.device.host_memory();
  tally.check(t.count && t.open && t.resolve, "count, open and resolve must not be null");
  tally.check(!t.alloc == !t.free, "one of alloc and free is null; set both, or with HOST_MEM neither");
  tally.check(host_memory || (t.alloc && t.free), "alloc and free are null without HOST_MEM");
  tally.check(t.copy || (host_memory && !async),
              "copy is null, which only a device with HOST_MEM and without ASYNC may have");
  tally.check(!t.pin == !t.unpin, "one of pin and unpin is null; set both or neither");
  const int streams = !!t.stream_create + !!t.completed + !!t.wait + !!t.sync;
  tally.check(streams == (async ? 4 : 0),
              std::to_string(streams) + " of stream_create, completed, wait and sync are set, expected " +
                  (async ? "4" : "0") + " with capabilities " + std::to_string(session.device.info().capabilities));
}

void check_info(Session& session, Tally& tally) {
  const plugrad_device_info& info = session.device.info();
  tally.check(info.struct_size == sizeof info, "open left struct_size " + std::to_string(info.struct_size) + " in the info");
  tally.check(!(info.capabilities & ~(PLUGRAD_HOST_MEM | PLUGRAD_ASYNC | PLUGRAD_FLUSHES_DENORMALS)),
              "unknown capabilities in the info");
  tally.check(info.alignment && !(info.alignment & (info.alignment - 1)),
              "the alignment " + std::to_string(info.alignment) + " is not a power of two");
  tally.check(info.name[0] && std::memchr(info.name, 0, sizeof info.name), "the device's name is empty or not terminated");
  tally.check(std::memchr(info.identity, 0, sizeof info.identity), "the device's identity is not terminated");
  tally.check(info.numa_node >= -1 && !info.reserved, "numa_node is below -1, or reserved is not 0");
}

// The info of a newer host is longer: a plugin of this revision must leave unknown fields unchanged.
void check_longer_info(Session& session, Tally& tally) {
  struct {
    plugrad_device_info info;
    unsigned char later[64];
  } longer{};
  std::memset(longer.later, 0x77, sizeof longer.later);
  longer.info.struct_size = sizeof longer;
  plugrad_device* device = nullptr;
  const plugrad_backend& table = *session.plugin.table;
  const Outcome outcome =
      attempt("open", [&] { return table.open(session.host, session.settings.device, nullptr, &device, &longer.info); });
  if (device) keep(device);
  tally.check(outcome.ok(), "open of a host whose device_info is longer returned " + outcome.text());
  tally.check(std::all_of(std::begin(longer.later), std::end(longer.later), [](unsigned char b) { return b == 0x77; }),
              "open wrote beyond the fields of device_info that it knows");
  tally.check(longer.info.alignment == session.device.info().alignment, "the alignment differs with a longer device_info");
}

void check_unknown_option(Session& session, Tally& tally) {
  struct LongerOption {  // like a newer revision's: the stride alone locates the next option
    plugrad_option option;
    uint64_t appended;
  } items[2] = {{{sizeof(LongerOption), 0, "no_such_option", "1"}, 7}, {{sizeof(LongerOption), 0, "nor_this_one", "x"}, 7}};
  const plugrad_options options{sizeof options, 2, sizeof(LongerOption), &items[0].option};
  plugrad_device* device = nullptr;
  plugrad_device_info info{};
  info.struct_size = sizeof info;
  const Outcome outcome = attempt("open with an unknown option", [&] {
    return session.plugin.table->open(session.host, session.settings.device, &options, &device, &info);
  });
  tally.check(outcome.status == PLUGRAD_INVALID,
              "open with the unknown option 'no_such_option' returned " + outcome.text() + ", expected INVALID");
  const bool named = outcome.message.find("no_such_option") != std::string::npos;
  tally.check(outcome.ok() || named, "the message about an unknown option does not name it: " + outcome.message);
}

void check_open_twice(Session& session, Tally& tally) {
  Device again(session.plugin.table, session.host, session.settings.device, session.settings.options);
  tally.check(again.handle() != session.device.handle(), "open returned the same handle twice");
  Queue queue = again.make_queue(), first = session.device.make_queue();
  const Block block(again, 64), other(session.device, 64);
  const uint64_t sent = 0x0123456789ABCDEF, sent_other = 42;
  uint64_t got = 0, got_other = 0;
  again.upload(queue, block.buffer(), 0, &sent, sizeof sent);
  session.device.upload(first, other.buffer(), 0, &sent_other, sizeof sent_other);
  again.download(queue, &got, block.buffer(), 0, sizeof got);
  session.device.download(first, &got_other, other.buffer(), 0, sizeof got_other);
  tally.check(got == sent && got_other == sent_other, "two handles of one device share memory");
}

void check_open_beyond(Session& session, Tally& tally) {
  for (const uint32_t index : {session.devices, session.devices + 1, ~0u}) {
    const plugrad_options options{sizeof options, 0, sizeof(plugrad_option), nullptr};
    plugrad_device* device = nullptr;
    plugrad_device_info info{};
    info.struct_size = sizeof info;
    const Outcome outcome =
        attempt("open", [&] { return session.plugin.table->open(session.host, index, &options, &device, &info); });
    tally.check(!outcome.ok(),
                "open of device " + std::to_string(index) + " returned OK; count says " + std::to_string(session.devices));
    if (outcome.ok()) keep(device);
  }
}

struct Oddity {
  const char* what;
  plugrad_signature signature;
};

std::vector<Oddity> oddities() {
  plugrad_signature add{};
  add.struct_size = sizeof add;
  add.opcode = PLUGRAD_OP_ADD;
  add.outputs = 1;
  add.inputs = 2;
  std::fill_n(add.dtypes, 3, uint8_t{PLUGRAD_F32});
  std::vector<Oddity> list;
  const auto with = [&](const char* what, auto change) {
    Oddity odd{what, add};
    change(odd.signature);
    list.push_back(odd);
  };
  with("opcode 0", [](auto& s) { s.opcode = 0; });
  with("opcode 0x7fff", [](auto& s) { s.opcode = 0x7fff; });
  with("opcode 0xfffffff0", [](auto& s) { s.opcode = 0xfffffff0u; });
  with("dtype 0", [](auto& s) { std::fill_n(s.dtypes, 3, uint8_t{0}); });
  with("dtype 200", [](auto& s) { std::fill_n(s.dtypes, 3, uint8_t{200}); });
  with("flag 2^30", [](auto& s) { s.flags = 1u << 30; });
  with("layout bit 2^15", [](auto& s) { s.layout = 1u << 15; });
  with("ADD of one input", [](auto& s) { s.inputs = 1; });
  with("ADD of 15 inputs", [](auto& s) {
    s.inputs = 15;
    std::fill_n(s.dtypes, 16, uint8_t{PLUGRAD_F32});
  });
  with("ADD without output", [](auto& s) { s.outputs = 0; });
  with("ADD of f32 and i64", [](auto& s) { s.dtypes[2] = PLUGRAD_I64; });
  with("ADD of bool", [](auto& s) { std::fill_n(s.dtypes, 3, uint8_t{PLUGRAD_BOOL}); });
  with("EXP of i64", [](auto& s) {
    s.opcode = PLUGRAD_OP_EXP;
    s.inputs = 1;
    s.dtypes[0] = s.dtypes[1] = PLUGRAD_I64;
    s.dtypes[2] = 0;
  });
  return list;
}

void check_unknown_questions(Session& session, Tally& tally) {
  const plugrad_backend& table = *session.plugin.table;
  for (const Oddity& odd : oddities()) {
    begin_call();
    const plugrad_kernel* kernel = table.resolve(session.device.handle(), &odd.signature);
    tally.check(!kernel, std::string("resolve returned a kernel for ") + odd.what + ", expected null");
    tally.check(!thread_reports().count,
                std::string("resolve reported an error about ") + odd.what + "; it must not report");
  }
}

// The signature of a newer host is longer: a plugin must ignore the unknown fields.
void check_longer_signature(Session& session, Tally& tally) {
  struct {
    plugrad_signature signature;
    uint64_t later[4];
  } longer{};
  const Question fill = question_for(PLUGRAD_OP_FILL, PLUGRAD_F32);
  longer.signature.struct_size = sizeof longer;
  longer.signature.opcode = PLUGRAD_OP_FILL;
  longer.signature.layout = PLUGRAD_IMMEDIATE;
  longer.signature.outputs = longer.signature.inputs = 1;
  longer.signature.dtypes[0] = longer.signature.dtypes[1] = PLUGRAD_F32;
  const plugrad_kernel* plain = resolve(*session.plugin.table, session.device.handle(), fill, PLUGRAD_IMMEDIATE);
  tally.check(session.plugin.table->resolve(session.device.handle(), &longer.signature) == plain,
              "resolve returns a different kernel for a signature whose struct_size is larger");
}

void check_extension(Session& session, Tally& tally) {
  if (!session.plugin.table->get_extension) return tally.skip("the plugin has no extensions");
  tally.check(!session.plugin.table->get_extension("no.such.extension/1"),
              "get_extension returns an extension for an unknown name");
}

}  // namespace

std::vector<Case> contract_cases() {
  return {{"contract.table", check_table},
          {"contract.name", check_name},
          {"contract.exports", check_exports},
          {"contract.entries", check_entries},
          {"contract.info", check_info},
          {"contract.longer_info", check_longer_info},
          {"contract.unknown_option", check_unknown_option},
          {"contract.open_twice", check_open_twice},
          {"contract.open_beyond", check_open_beyond},
          {"contract.unknown_questions", check_unknown_questions},
          {"contract.longer_signature", check_longer_signature},
          {"contract.extension", check_extension}};
}

}  // namespace plugrad::conformance
