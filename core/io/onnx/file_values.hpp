// What the constants of a model's file determine, for all shapes of its inputs. Several runs may use it at once.
#pragma once
#include <core/io/onnx/graph.hpp>

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace plugrad {
struct Storage;
}

namespace plugrad::io::onnx {

// Whether the value, or an element of the sequence, lies in this memory.
bool lies_in(const Value& value, const Storage* storage);

class FileValues {
 public:
  explicit FileValues(const Model& model);

  // Returns an initializer. `read` reads it from the file where it is not there yet; other runs wait meanwhile.
  Value initializer(ValueId id, const std::function<Value()>& read);
  // Returns the results of a node of the level file, if a run kept them.
  std::optional<Values> results(const Node& node) const;
  // Keeps the results of a node of the level file, for all further runs, and frees constants that no other node needs.
  // Returns what is kept: another run may have been faster.
  Values keep(const Node& node, Values outputs);
  // Returns the at-th tensor that a node's mapping made of constants. `make` makes it where it is not there yet; without
  // `make` the tensor is undefined then.
  Tensor prepared(const Node& node, size_t at, const std::function<Tensor()>& make);
  // Whether a constant lies in this memory.
  bool holds(const Storage* storage) const;

 private:
  struct ByNode {
    std::optional<Values> results;
    std::vector<Tensor> prepared;
  };
  const Model& model_;
  mutable std::mutex mutex_;
  std::vector<Value> initializers_;  // by value; absent until a node needs it, and once no node does
  std::vector<uint32_t> users_;      // by value: nodes without kept results, and outputs
  std::vector<ByNode> nodes_;
};

}  // namespace plugrad::io::onnx
