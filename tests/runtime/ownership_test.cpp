// Paths and permissions of plugin files: a search leaves out files with bad ones, states the reason, and loads the others.
#include <tests/paths.hpp>
#include <tests/runtime/prefix.hpp>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace plugrad::test {
namespace {
namespace fs = std::filesystem;

constexpr uid_t kSomebody = 12345;

// One plugin file or directory that a search finds. `make` creates it below a directory of its own and returns the value for
// PLUGRAD_PLUGIN_PATH; an empty reason means that the plugin loads.
struct Path {
  const char* name;
  bool needs_root;
  std::string (*make)(const fs::path& below);
  const char* reason;
};
void PrintTo(const Path& p, std::ostream* out) { *out << p.name; }

fs::path plugin_in(const fs::path& directory) {
  fs::create_directories(directory);
  return add_plugin(variant("tiny"), directory, "tiny");
}
void mode(const fs::path& path, mode_t bits) { ASSERT_EQ(chmod(path.c_str(), bits), 0); }
void give(const fs::path& path, uid_t owner) { ASSERT_EQ(lchown(path.c_str(), owner, static_cast<gid_t>(owner)), 0); }
fs::path named(const fs::path& directory) {
  fs::create_directories(directory);
  return directory / "libplugrad-backend-tiny.so";
}
void listen_at(const fs::path& file) {
  const int opened = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  file.string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(opened, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(opened);
}

const Path kPaths[] = {
    // --- Good paths.
    {"plain", false,
     [](const fs::path& d) {
       plugin_in(d / "x");
       return (d / "x").string();
     },
     ""},
    {"spaces", false,
     [](const fs::path& d) {
       plugin_in(d / "a b  c");
       return (d / "a b  c").string();
     },
     ""},
    {"unicode", false,
     [](const fs::path& d) {
       plugin_in(d / "größe-数");
       return (d / "größe-数").string();
     },
     ""},
    {"not_utf8", false,
     [](const fs::path& d) {
       plugin_in(d / "x\xff");
       return (d / "x\xff").string();
     },
     ""},
    {"slash_at_the_end", false,
     [](const fs::path& d) {
       plugin_in(d / "x");
       return (d / "x").string() + "///";
     },
     ""},
    {"dots", false,
     [](const fs::path& d) {
       plugin_in(d / "x");
       return (d / "x/../x/.").string();
     },
     ""},
    {"twice", false,
     [](const fs::path& d) {
       plugin_in(d / "x");
       return (d / "x").string() + ":" + (d / "x").string();
     },
     ""},
    {"deep", false,
     [](const fs::path& d) {
       fs::path deep = d;
       for (int i = 0; i < 40; ++i) deep /= "directory-of-a-name-of-40-characters----";
       plugin_in(deep);
       return deep.string();
     },
     ""},
    {"link_to_a_directory", false,
     [](const fs::path& d) {
       plugin_in(d / "real");
       fs::create_directory_symlink(d / "real", d / "link");
       return (d / "link").string();
     },
     ""},
    {"link_to_a_file", false,
     [](const fs::path& d) {
       const fs::path real = plugin_in(d / "real");
       fs::create_symlink(real, named(d / "x"));
       return (d / "x").string();
     },
     ""},
    {"relative_link", false,
     [](const fs::path& d) {
       plugin_in(d / "real");
       fs::create_symlink("../real/libplugrad-backend-tiny.so", named(d / "x"));
       return (d / "x").string();
     },
     ""},
    {"hard_link", false,
     [](const fs::path& d) {
       const fs::path real = plugin_in(d / "real");
       fs::create_hard_link(real, named(d / "x"));
       return (d / "x").string();
     },
     ""},
    {"group_may_write", false,
     [](const fs::path& d) {
       mode(plugin_in(d / "x"), 0664);
       mode(d / "x", 0775);
       return (d / "x").string();
     },
     ""},
    {"read_only", false,
     [](const fs::path& d) {
       mode(plugin_in(d / "x"), 0444);
       return (d / "x").string();
     },
     ""},
    {"sticky_parent", false,
     [](const fs::path& d) {
       plugin_in(d / "sticky/x");
       mode(d / "sticky", 01777);
       return (d / "sticky/x").string();
     },
     ""},
    {"beside_missing_ones", false,
     [](const fs::path& d) {
       plugin_in(d / "x");
       return "/nowhere/1:" + (d / "x").string() + ":/nowhere/2";
     },
     ""},
    {"everybody_may_write_above_the_core_too", false,
     [](const fs::path& d) {
       plugin_in(d / "x");
       mode(d.parent_path(), 0777);
       return (d / "x").string();
     },
     ""},
    // --- Directories that cannot be searched.
    {"missing", false, [](const fs::path& d) { return (d / "missing").string(); }, "No such file or directory"},
    {"a_file_as_directory", false, [](const fs::path& d) { return plugin_in(d).string(); }, "Not a directory"},
    {"too_long_a_name", false, [](const fs::path& d) { return (d / std::string(300, 'x')).string(); }, "File name too long"},
    {"too_long_a_path", false, [](const fs::path& d) { return d.string() + std::string(5000, '/') + "x"; },
     "File name too long"},
    {"loop", false,
     [](const fs::path& d) {
       fs::create_symlink(d / "b", d / "a");
       fs::create_symlink(d / "a", d / "b");
       return (d / "a").string();
     },
     "Too many levels of symbolic links"},
    {"dangling_directory", false,
     [](const fs::path& d) {
       fs::create_symlink("/nowhere/at/all", d / "x");
       return (d / "x").string();
     },
     "No such file or directory"},
    {"device_as_directory", false, [](const fs::path&) { return std::string("/dev/null"); }, "Not a directory"},
    {"relative", false, [](const fs::path&) { return std::string("some/where"); }, "not absolute"},
    {"dot", false, [](const fs::path&) { return std::string("."); }, "not absolute"},
    {"home", false, [](const fs::path&) { return std::string("~/plugins"); }, "not absolute"},
    // --- Files that are not plugins.
    {"directory", false,
     [](const fs::path& d) {
       fs::create_directories(named(d / "x"));
       return (d / "x").string();
     },
     "not a regular file"},
    {"pipe", false,
     [](const fs::path& d) {
       EXPECT_EQ(mkfifo(named(d / "x").c_str(), 0600), 0);
       return (d / "x").string();
     },
     "not a regular file"},
    {"socket", false,
     [](const fs::path& d) {
       listen_at(named(d / "x"));
       return (d / "x").string();
     },
     "not a regular file"},
    {"link_to_a_device", false,
     [](const fs::path& d) {
       fs::create_symlink("/dev/zero", named(d / "x"));
       return (d / "x").string();
     },
     "not a regular file"},
    {"link_to_a_directory_as_file", false,
     [](const fs::path& d) {
       fs::create_symlink("/tmp", named(d / "x"));
       return (d / "x").string();
     },
     "not a regular file"},
    {"dangling", false,
     [](const fs::path& d) {
       fs::create_symlink("/nowhere/at/all", named(d / "x"));
       return (d / "x").string();
     },
     "No such file"},
    {"link_to_itself", false,
     [](const fs::path& d) {
       fs::create_symlink(named(d / "x"), named(d / "x"));
       return (d / "x").string();
     },
     "Too many levels"},
    {"program", false,
     [](const fs::path& d) {
       fs::copy_file(PLUGRAD_PROBE, named(d / "x"));
       return (d / "x").string();
     },
     "executable"},
    {"core_itself", false,
     [](const fs::path& d) {
       fs::copy_file(PLUGRAD_CORE, named(d / "x"));
       return (d / "x").string();
     },
     "does not export"},
    // --- Paths that other users may write.
    {"everybody_may_write", false,
     [](const fs::path& d) {
       mode(plugin_in(d / "x"), 0666);
       return (d / "x").string();
     },
     "everybody may write"},
    {"everybody_may_write_to_its_directory", false,
     [](const fs::path& d) {
       plugin_in(d / "x");
       mode(d / "x", 0777);
       return (d / "x").string();
     },
     "everybody may write"},
    {"everybody_may_write_above", false,
     [](const fs::path& d) {
       plugin_in(d / "open/x/y");
       mode(d / "open", 0777);
       return (d / "open/x/y").string();
     },
     "everybody may write"},
    {"link_to_what_everybody_may_write", false,
     [](const fs::path& d) {
       const fs::path real = plugin_in(d / "open/real");
       mode(d / "open", 0777);
       fs::create_symlink(real, named(d / "x"));
       return (d / "x").string();
     },
     "everybody may write"},
    {"link_in_what_everybody_may_write", false,
     [](const fs::path& d) {
       const fs::path real = plugin_in(d / "real");
       fs::create_symlink(real, named(d / "open/x"));
       mode(d / "open", 0777);
       return (d / "open/x").string();
     },
     "everybody may write"},
    {"somebody_owns_it", true,
     [](const fs::path& d) {
       give(plugin_in(d / "x"), kSomebody);
       return (d / "x").string();
     },
     "belongs to user 12345"},
    {"somebody_owns_its_directory", true,
     [](const fs::path& d) {
       plugin_in(d / "x");
       give(d / "x", kSomebody);
       return (d / "x").string();
     },
     "belongs to user 12345"},
    {"somebody_owns_a_directory_above", true,
     [](const fs::path& d) {
       plugin_in(d / "s/x");
       give(d / "s", kSomebody);
       return (d / "s/x").string();
     },
     "belongs to user 12345"},
    {"somebody_owns_it_in_a_sticky_directory", true,
     [](const fs::path& d) {
       give(plugin_in(d / "x"), kSomebody);
       mode(d / "x", 01777);
       return (d / "x").string();
     },
     "belongs to user 12345"},
    {"somebody_owns_the_link", true,
     [](const fs::path& d) {
       const fs::path real = plugin_in(d / "real");
       fs::create_symlink(real, named(d / "x"));
       give(named(d / "x"), kSomebody);
       return (d / "x").string();
     },
     "belongs to user 12345"},
    {"a_link_on_the_way_lies_in_an_open_directory", false,
     [](const fs::path& d) {
       plugin_in(d / "real");
       fs::create_directory(d / "open");
       fs::create_directory_symlink(d / "real", d / "open/link");
       mode(d / "open", 0777);
       return (d / "open/link").string();
     },
     "everybody may write"},
    {"somebody_owns_a_link_on_the_way", true,
     [](const fs::path& d) {
       plugin_in(d / "real");
       fs::create_directory(d / "sticky");
       fs::create_directory_symlink("../real", d / "sticky/link");
       give(d / "sticky/link", kSomebody);
       mode(d / "sticky", 01777);
       return (d / "sticky/link").string();
     },
     "belongs to user 12345"},
    {"a_link_on_the_way_of_ours", false,
     [](const fs::path& d) {
       plugin_in(d / "real");
       fs::create_directory_symlink("real", d / "link");
       return (d / "link/../link").string();
     },
     ""},
};

class Paths : public ::testing::TestWithParam<Path> {};

TEST_P(Paths, AreSearchedOrLeftOutWithTheReason) {
  const Path& p = GetParam();
  if (p.needs_root && geteuid() != 0) GTEST_SKIP() << "only root can give a file to somebody else";
  const Prefix prefix;
  const std::string list = p.make(prefix.directory("p"));
  add_plugin(test::plugin_path("libplugrad-backend-reference.so"), prefix.plugins(), "reference");
  const Outcome outcome =
      prefix.probe({"records", "-", "has", "tiny", "compute", "reference"}, {{"PLUGRAD_PLUGIN_PATH", list}});
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(outcome.field("value", 1), "3.500000");
  const bool loads = std::string(p.reason).empty();
  EXPECT_EQ(outcome.field("has", 1), loads ? "yes" : "no");
  if (!loads) {
    EXPECT_PRED2(contains, outcome.all("record").at(0).at(3), p.reason);
  }
  EXPECT_EQ(outcome.all("error").size(), 0u);
  // The error for a device that does not exist also gives the reason; no other exception is thrown.
  const Outcome unknown = prefix.probe({"device", "npu"}, {{"PLUGRAD_PLUGIN_PATH", list}});
  EXPECT_PRED2(contains, unknown.field("error", 2), "no device 'npu'");
  const std::string given = list.starts_with("/") ? p.reason : "";  // the search ignores relative paths
  EXPECT_PRED2(contains, unknown.field("error", 2), given);
}

INSTANTIATE_TEST_SUITE_P(Search, Paths, ::testing::ValuesIn(kPaths),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Program, IsResponsibleForThePathsThatItNames) {
  const Prefix prefix;
  const fs::path file = plugin_in(prefix.root() / "open");
  mode(file, 0666);
  mode(prefix.root() / "open", 0777);
  EXPECT_EQ(prefix.probe({"load", file, "compute", "tiny"}).field("value", 1), "3.500000");
}

}  // namespace
}  // namespace plugrad::test
