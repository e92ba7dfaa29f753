// Tests that the layout hash covers every field of abi.h: if a field is renamed or exchanged with the next field in a copy
// of the headers, the copy does not compile, and the compiler's message states the reason.
#include <tests/conformance/program.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

namespace {

namespace fs = std::filesystem;

const fs::path kHeaders = PLUGRAD_SDK_HEADERS;
const std::string kCompiler = PLUGRAD_COMPILER;

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Field {
  std::string type, name;  // plugrad_<type>::<name>
};

// Returns the position of a struct's body in the text of abi.h, from its opening brace to its closing brace.
std::pair<size_t, size_t> body_of(const std::string& abi, const std::string& type) {
  const size_t begin = abi.find("typedef struct plugrad_" + type + " {");
  const size_t end = abi.find("\n} plugrad_" + type + ";", begin);
  EXPECT_NE(begin, std::string::npos) << type;
  EXPECT_NE(end, std::string::npos) << type;
  return {begin, end};
}

// Returns the names of the fields that a struct's body declares, in order.
std::vector<std::string> declared(std::string body) {
  body = std::regex_replace(body.substr(body.find('{') + 1), std::regex("//[^\n]*"), "");
  std::vector<std::string> names;
  std::stringstream statements(body);
  for (std::string statement; std::getline(statements, statement, ';');) {
    std::smatch found;
    if (std::regex_search(statement, found, std::regex("\\(\\*(\\w+)\\)"))) {
      names.push_back(found[1]);
      continue;
    }
    std::stringstream parts(statement);
    for (std::string part; std::getline(parts, part, ',');)
      if (std::regex_search(part, found, std::regex("(\\w+)(\\[\\w+\\])?\\s*$"))) names.push_back(found[1]);
  }
  return names;
}

// Returns all fields that abi.h declares.
std::vector<Field> fields_of(const std::string& abi) {
  std::vector<Field> fields;
  const std::regex opening("typedef struct plugrad_(\\w+) \\{");
  for (std::sregex_iterator it(abi.begin(), abi.end(), opening), end; it != end; ++it) {
    const std::string type = (*it)[1];
    const auto [from, to] = body_of(abi, type);
    for (const std::string& name : declared(abi.substr(from, to - from))) fields.push_back({type, name});
  }
  return fields;
}

// Replaces the name `was` by `now` in the declaration of that field in one struct.
std::string renamed(const std::string& abi, const std::string& type, const std::string& was, const std::string& now) {
  const auto [from, to] = body_of(abi, type);
  // Comments may name fields too.
  std::string body = std::regex_replace(abi.substr(from, to - from), std::regex("//[^\n]*"), "");
  const std::regex declaration("([ *(,])" + was + "(\\[|\\)\\(|;|,)");
  std::smatch found;
  EXPECT_TRUE(std::regex_search(body, found, declaration)) << type << "." << was;
  body.replace(found.position(0), found.length(0), found[1].str() + now + found[2].str());
  return abi.substr(0, from) + body + abi.substr(to);
}

class Mutation : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("plugrad-layout-" + std::to_string(getpid()));
    fs::create_directories(folder_ / "plugrad/sdk");
    for (const char* table : {"plugrad/sdk/ops.def", "plugrad/sdk/dtypes.def", "plugrad/sdk/layout.hpp"})
      fs::copy_file(kHeaders / table, folder_ / table, fs::copy_options::overwrite_existing);
    abi_ = read(kHeaders / "plugrad/sdk/abi.h");
    table_ = read(kHeaders / "plugrad/sdk/fields.def");
  }
  void TearDown() override { fs::remove_all(folder_); }

  Said compiled(const std::string& abi, const std::string& table) {
    std::ofstream(folder_ / "plugrad/sdk/abi.h") << abi;
    std::ofstream(folder_ / "plugrad/sdk/fields.def") << table;
    std::ofstream(folder_ / "use.cpp") << "#include <plugrad/sdk/layout.hpp>\n";
    return run_program({kCompiler, "-std=c++20", "-fsyntax-only", "-I", folder_.string(), (folder_ / "use.cpp").string()});
  }
  void expect_refused(const std::string& abi, const std::string& table, const std::string& what) {
    const Said said = compiled(abi, table);
    EXPECT_NE(said.status, 0) << what << " compiles";
    EXPECT_NE(said.text.find("a field moved"), std::string::npos) << what << ":\n" << said.text;
  }

  fs::path folder_;
  std::string abi_, table_;
};

TEST_F(Mutation, NoneCompiles) {
  const Said said = compiled(abi_, table_);
  EXPECT_EQ(said.status, 0) << said.text;
}

TEST_F(Mutation, EveryFieldIsInTheHash) {
  const std::vector<Field> fields = fields_of(abi_);
  ASSERT_GT(fields.size(), 100u);
  std::multiset<std::string> hashed;
  const std::regex entry("PLUGRAD_FIELD\\((\\w+), (\\w+)\\)");
  for (std::sregex_iterator it(table_.begin(), table_.end(), entry), end; it != end; ++it)
    hashed.insert((*it)[1].str() + "." + (*it)[2].str());
  for (const Field& field : fields)
    EXPECT_EQ(hashed.count(field.type + "." + field.name), 1u) << field.type << "." << field.name;
  EXPECT_EQ(hashed.size(), fields.size());
}

TEST_F(Mutation, ARenamedFieldIsRefused) {
  for (const Field& field : fields_of(abi_)) {
    const std::string now = field.name + "_too";
    const std::regex entry("PLUGRAD_FIELD\\(" + field.type + ", " + field.name + "\\)");
    expect_refused(renamed(abi_, field.type, field.name, now),
                   std::regex_replace(table_, entry, "PLUGRAD_FIELD(" + field.type + ", " + now + ")"),
                   field.type + "." + field.name + " renamed");
  }
}

TEST_F(Mutation, TwoSwappedFieldsAreRefused) {
  const std::vector<Field> fields = fields_of(abi_);
  for (size_t i = 0; i + 1 < fields.size(); ++i) {
    const Field &a = fields[i], &b = fields[i + 1];
    if (a.type != b.type) continue;
    std::string abi = renamed(abi_, a.type, a.name, "swapped_away");
    abi = renamed(abi, a.type, b.name, a.name);
    abi = renamed(abi, a.type, "swapped_away", b.name);
    expect_refused(abi, table_, a.type + "." + a.name + " and " + b.name + " swapped");
  }
}

TEST_F(Mutation, ANarrowedFieldIsRefused) {
  std::string abi = abi_;
  const std::string was = "  uint64_t memory;";
  const size_t at = abi.find(was);
  ASSERT_NE(at, std::string::npos);
  abi.replace(at, was.size(), "  uint32_t memory, memory_high;");
  expect_refused(abi, table_, "device_info.memory narrowed");
}

TEST_F(Mutation, AnotherHashIsRefused) {
  std::string abi = abi_;
  const size_t at = abi.find("PLUGRAD_LAYOUT_0 0x");
  ASSERT_NE(at, std::string::npos);
  abi[at + 19] = abi[at + 19] == '1' ? '2' : '1';
  expect_refused(abi, table_, "another hash");
}

}  // namespace
