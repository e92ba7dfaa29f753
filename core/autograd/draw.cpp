#include <plugrad/autograd/draw.hpp>

#include <core/autograd/node.hpp>

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <vector>

namespace plugrad {
namespace {

std::string number(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value, std::chars_format::general, 5).ptr);
}

// Escapes characters with a meaning in a record label.
std::string escaped(const std::string& text) {
  std::string all;
  for (const char c : text) {
    if (std::string_view("\\\"{}|<> ").find(c) != std::string_view::npos) all += '\\';
    if (c != '\n') all += c;
  }
  return all;
}

// Numbers each node of the root's graph once, in the order of discovery. A node does not keep its own tensor: its value is
// known only if a later op saved it. All ops save their operands in the mode kRetaining.
class Drawing {
 public:
  explicit Drawing(const DrawOptions& options) : options_(options) {}

  void walk(const Tensor& root) {
    if (root.impl().node) find(root.impl().node.get(), root);
    else constant(root);
    for (size_t next = 0; next < found_.size(); ++next) expand(next);
  }

  std::string text() const {
    std::string all = "digraph {\n  rankdir=" + options_.direction + ";\n  node [fontname=\"sans-serif\"];\n";
    for (size_t i = 0; i < found_.size(); ++i) all += box(i);
    for (const std::string& each : edges_) all += each;
    return all + "}\n";
  }

 private:
  struct Found {
    const Node* node;  // null for a constant
    Tensor value;      // undefined if no op saved it
  };

  size_t add(const Node* node, const Tensor& value) {
    if (found_.size() >= options_.limit)
      throw Error(Code::invalid, "[draw_dot] more than " + std::to_string(options_.limit) +
                                     " nodes: draw a smaller part, or raise the limit");
    found_.push_back({node, value});
    return found_.size() - 1;
  }
  size_t find(const Node* node, const Tensor& value) {
    const auto [place, is_new] = numbers_.try_emplace(node, found_.size());
    if (is_new) add(node, value);
    else if (!found_[place->second].value.defined()) found_[place->second].value = value;
    return place->second;
  }
  size_t constant(const Tensor& value) { return add(nullptr, value); }

  void expand(size_t at) {
    const Node* node = found_[at].node;
    if (!node || !node->rule) return;
    const std::string op = "op" + std::to_string(at);
    edges_.push_back("  " + op + " [label=\"" + escaped(node->rule->name) + "\"];\n  " + op + " -> n" + std::to_string(at) +
                     ";\n");
    const auto edges = node->edges();
    for (size_t i = 0; i < edges.size(); ++i) {
      const Tensor saved = i < node->operands ? node->saved[i] : Tensor();
      if (!edges[i] && !saved.defined()) continue;
      const size_t from = edges[i] ? find(edges[i].get(), saved) : constant(saved);
      edges_.push_back("  n" + std::to_string(from) + " -> " + op + ";\n");
    }
  }

  static std::string value_text(const Tensor& x) { return x.count() == 1 ? number(x.item<double>()) : x.shape().text(); }

  std::string box(size_t at) const {
    const auto& [node, value] = found_[at];
    std::string label;
    if (node && node->more && !node->more->title.empty()) label = escaped(node->more->title) + " | ";
    if (value.defined() && value.count() == 1) label += "data " + value_text(value);
    else
      label +=
          "shape " + escaped(node ? Shape(std::span<const int64_t>(node->shape, node->rank)).text() : value.shape().text());
    if (node && node->grad.defined()) label += " | grad " + escaped(value_text(node->grad));
    return "  n" + std::to_string(at) + " [shape=record, label=\"{ " + label + " }\"];\n";
  }

  const DrawOptions& options_;
  std::vector<Found> found_;
  std::unordered_map<const Node*, size_t> numbers_;
  std::vector<std::string> edges_;
};
}  // namespace

std::string draw_dot(const Tensor& root, const DrawOptions& options) {
  require_defined(root, "draw_dot");
  const std::string& direction = options.direction;
  if (direction != "LR" && direction != "TB" && direction != "RL" && direction != "BT")
    throw Error(Code::invalid, "[draw_dot] direction '" + direction + "' is unknown: expected LR, TB, RL or BT");
  Drawing drawing(options);
  drawing.walk(root);
  return drawing.text();
}

}  // namespace plugrad
