#include <tools/plugrad/json.hpp>

#include <nlohmann/json.hpp>

namespace plugrad::tool {
namespace {

using Tree = nlohmann::ordered_json;

std::shared_ptr<const void> kept(Tree tree) { return std::make_shared<const Tree>(std::move(tree)); }

const Tree& tree_in(const std::shared_ptr<const void>& pointer) { return *static_cast<const Tree*>(pointer.get()); }

// Returns the action's result, and turns the library's errors into ours.
template <class Action> auto checked(Action action) {
  try {
    return action();
  } catch (const Tree::exception& error) {
    throw JsonError(error.what());
  }
}

}  // namespace

Json::Json(std::nullptr_t) : tree_(kept(nullptr)) {}
Json::Json(bool value) : tree_(kept(value)) {}
Json::Json(int value) : tree_(kept(value)) {}
Json::Json(int64_t value) : tree_(kept(value)) {}
Json::Json(uint32_t value) : tree_(kept(value)) {}
Json::Json(uint64_t value) : tree_(kept(value)) {}
Json::Json(double value) : tree_(kept(value)) {}
Json::Json(const char* text) : tree_(kept(text)) {}
Json::Json(const std::string& text) : tree_(kept(text)) {}
Json::Json(const std::vector<int64_t>& numbers) : tree_(kept(numbers)) {}
Json::Json(const std::vector<std::string>& texts) : tree_(kept(texts)) {}

Json::Json(const std::vector<Json>& values) {
  Tree list = Tree::array();
  for (const Json& each : values) list.push_back(tree_in(each.tree_));
  tree_ = kept(std::move(list));
}

Json Json::object(const std::vector<Member>& members) {
  Tree tree = Tree::object();
  for (const auto& [name, value] : members) tree[name] = tree_in(value.tree_);
  return Json(kept(std::move(tree)));
}

Json Json::parse(const std::string& text) {
  return checked([&] { return Json(kept(Tree::parse(text))); });
}

std::string Json::pretty() const { return tree_in(tree_).dump(2, ' ', false, Tree::error_handler_t::replace); }

std::string Json::compact() const {
  return checked([&] { return tree_in(tree_).dump(); });
}

bool Json::is_array() const { return tree_in(tree_).is_array(); }
bool Json::is_object() const { return tree_in(tree_).is_object(); }
bool Json::contains(const std::string& name) const { return tree_in(tree_).contains(name); }

Json Json::at(const std::string& name) const {
  return checked([&] { return Json(std::shared_ptr<const void>(tree_, &tree_in(tree_).at(name))); });
}

std::vector<Json> Json::elements() const {
  std::vector<Json> all;
  for (const Tree& each : tree_in(tree_)) all.push_back(Json(std::shared_ptr<const void>(tree_, &each)));
  return all;
}

template <class T> T Json::as() const {
  return checked([&] { return tree_in(tree_).get<T>(); });
}
template bool Json::as() const;
template double Json::as() const;
template int64_t Json::as() const;
template uint64_t Json::as() const;
template std::string Json::as() const;
template std::vector<int64_t> Json::as() const;

}  // namespace plugrad::tool
