// What sets of input shapes determined. Several threads may use it at once.
#pragma once
#include <core/io/onnx/run.hpp>

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace plugrad::io::onnx {

// The dtypes and shapes of inputs.
std::string key_text(const Values& inputs);

struct KeptPlan {
  std::string key;
  std::optional<Plan> plan;  // nothing if elements decide
  std::string unrecordable;  // why calls with these shapes run op by op, if so
};

// The last used first. Their number and memory are bounded.
class Plans {
 public:
  // Returns null for new shapes.
  std::shared_ptr<const KeptPlan> find(const std::string& key);
  void add(KeptPlan plan);
  // From now on calls with these shapes run op by op.
  void refuse(const std::string& key, const std::string& why);
  // Forgets all shapes but the key's.
  void drop_others(const std::string& key);
  std::string explain() const;

 private:
  struct Entry {
    std::shared_ptr<const KeptPlan> plan;
    uint64_t bytes;
  };
  std::list<Entry>::iterator place_of(const std::string& key);

  mutable std::mutex mutex_;
  std::list<Entry> all_;
  uint64_t bytes_ = 0;
};

}  // namespace plugrad::io::onnx
