// The table of operators, and a node as a mapping to plugrad's functions sees it.
#pragma once
#include <core/io/onnx/element_types.hpp>
#include <core/io/onnx/tensors.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::io::onnx {

struct Node;
struct Graph;
class Run;

// What determines a value: constants of the file; they and the shapes of the inputs; or the inputs' elements as well.
enum class Level : uint8_t { file, shapes, data };

// Elements on the host, read once. Several runs may ask for them at once.
class HostElements {
 public:
  HostElements() = default;
  explicit HostElements(int64_t number)
      : integers_(std::in_place, 1, number), reals_(std::in_place, 1, static_cast<double>(number)) {}
  template <class F> std::vector<int64_t> integers(const F& read) { return once(integers_, read); }
  template <class F> std::vector<double> reals(const F& read) { return once(reals_, read); }

 private:
  template <class T, class F> std::vector<T> once(std::optional<std::vector<T>>& all, const F& read) {
    const std::lock_guard lock(mutex_);
    if (!all) all = read();
    return *all;
  }
  std::mutex mutex_;
  std::optional<std::vector<int64_t>> integers_;
  std::optional<std::vector<double>> reals_;
};

// A tensor, a sequence or nothing.
struct Value {
  Value() = default;
  Value(Tensor t) : Value(std::move(t), ElementType::none) {}
  Value(Tensor t, ElementType element) : tensor(std::move(t)), type(element) {
    if (type == ElementType::none && tensor.defined()) type = element_type_of(tensor.dtype());
  }
  explicit Value(std::vector<Value> values) : sequence(std::make_shared<const std::vector<Value>>(std::move(values))) {}
  bool present() const { return tensor.defined() || sequence; }

  Tensor tensor;
  ElementType type = ElementType::none;
  Level level = Level::data;
  std::shared_ptr<const std::vector<Value>> sequence;
  std::shared_ptr<HostElements> host = {};  // where the level is below data
};
using Values = std::vector<Value>;
// The value with at least this level, the elements of a sequence included.
Value raised(Value value, Level level);

// One execution of a node. Its methods throw Error; the caller adds the node's name and the shapes of its inputs.
class Call {
 public:
  Call(Run& run, const Node& node, Values inputs, bool constant)
      : run_(run), node_(node), inputs_(std::move(inputs)), constant_(constant) {}

  Run& run() const { return run_; }
  Device device() const;
  int64_t opset() const;
  bool node_is(std::string_view op) const;

  size_t inputs() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].present(); }
  const Value& value(size_t i) const;
  const Tensor& tensor(size_t i) const;
  Tensor optional(size_t i) const { return has(i) ? tensor(i) : Tensor(); }
  const std::vector<Value>& sequence(size_t i) const;
  ElementType type(size_t i) const { return value(i).type; }
  bool floating(size_t i) const { return onnx::is_floating(type(i)); }
  Shape shape(size_t i) const { return tensor(i).shape(); }
  int rank(size_t i) const { return tensor(i).rank(); }
  // Elements of an input on the host. Inside a recording the input must be below the level data.
  std::vector<int64_t> integers(size_t i) const { return host_integers(value(i)); }
  std::vector<double> reals(size_t i) const { return host_reals(value(i)); }
  int64_t integer(size_t i) const;
  double real(size_t i) const;
  std::vector<int64_t> host_integers(const Value& value) const;
  std::vector<double> host_reals(const Value& value) const;
  // Notes that the results need elements which only the run knows: nothing can be recorded then.
  void note_read() const;
  bool known(size_t i) const { return value(i).level != Level::data; }

  size_t outputs() const;
  bool wants(size_t i) const;  // an output that has a name

  bool has_attribute(std::string_view name) const { return find(name); }
  int64_t integer(std::string_view name, int64_t otherwise) const;
  double real(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, const std::string& otherwise) const;
  std::vector<int64_t> integers(std::string_view name) const;  // empty where absent
  std::vector<double> reals(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  Tensor tensor_attribute(std::string_view name, ElementType& type) const;
  const Graph& graph(std::string_view name) const;
  // Throws Error (unsupported) for an attribute that the mapping did not read and that is not 0 or empty.
  void refuse_unread_attributes() const;

  // A tensor that has input i's type, from a result that may have another dtype or lie outside the type's range.
  Value like(const Tensor& result, size_t i = 0) const { return as(result, type(i)); }
  Value as(const Tensor& result, ElementType type) const;
  // A tensor that the mapping makes from the host's data: made once for a set of input shapes.
  Tensor made(const std::function<Tensor()>& make) const;
  Tensor made(const std::vector<int64_t>& numbers, const Shape& shape) const;
  Tensor made(const std::vector<double>& numbers, const Shape& shape, DType dtype) const;
  Tensor arange(int64_t end) const;  // i64
  // A tensor made of these inputs, and of the shapes of the others: made once if they are constant.
  Tensor prepared(std::initializer_list<size_t> inputs, const std::function<Tensor()>& make,
                  std::initializer_list<size_t> shapes_of = {}) const;

  // An axis in 0 .. rank - 1. Throws Error (invalid).
  static int axis(int64_t axis, int rank);
  // A number of the file that must be from 1 to 2^31. Throws Error (invalid) with its name.
  static int64_t positive(int64_t number, const char* name);
  int64_t positive_attribute(const char* name, int64_t otherwise) const { return positive(integer(name, otherwise), name); }
  // Elements that a mapping makes on the host. Throws Error (unsupported) for over 2^28.
  static int64_t countable(double elements);

 private:
  const AttributeMessage* find(std::string_view name) const;

  Run& run_;
  const Node& node_;
  Values inputs_;
  bool constant_;  // whether the results are below the level data
  mutable std::set<const AttributeMessage*> read_;
};

struct Operator {
  enum class Kind : uint8_t {
    plain,
    shape,   // its results depend on the shape of the input alone
    flow,    // runs inner graphs, whose nodes have levels of their own
    random,  // its results are never constant
    whole,   // moves whole values: the results have the levels of the inputs
  };
  using Single = Value (*)(Call&);
  using Multiple = Values (*)(Call&);
  constexpr Operator(std::string_view text, Single f, Kind k = Kind::plain) : name(text), single(f), kind(k) {}
  constexpr Operator(std::string_view text, Multiple f, Kind k = Kind::plain) : name(text), multiple(f), kind(k) {}

  std::string_view name;  // "Conv"; with the domain where it is not ONNX's own: "com.microsoft.Gelu"
  Single single = nullptr;
  Multiple multiple = nullptr;
  Kind kind;
};

// Returns null for an operator that is not implemented.
const Operator* find_operator(const std::string& domain, const std::string& name);

}  // namespace plugrad::io::onnx
