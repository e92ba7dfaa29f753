// The innermost Autocast of a thread, as ops see it.
#pragma once
#include <core/autograd/node.hpp>
#include <plugrad/autograd/autocast.hpp>

#include <memory>
#include <unordered_map>

namespace plugrad {

struct Autocast::State {
  struct Converted {
    Tensor source, result;
    uint32_t version;
  };
  using Cache = std::unordered_map<const void*, Converted>;

  AutocastOptions options;
  std::shared_ptr<Cache> cache;  // of the outermost region, by parameter

  bool covers(const Tensor& x) const;
};

inline bool autocasting() { return local().mode & kAutocasting; }
inline Autocast::State& autocast_state() { return *static_cast<Autocast::State*>(local().autocast); }
// Returns options for an Autocast equal to the innermost Autocast.
AutocastOptions autocast_options();

// While this object lives, ops compute in the dtypes of their operands.
class WithoutAutocast {
 public:
  WithoutAutocast() : before_(local().mode) { local().mode &= ~uint32_t(kAutocasting); }
  ~WithoutAutocast() { local().mode = before_; }
  WithoutAutocast(const WithoutAutocast&) = delete;
  WithoutAutocast& operator=(const WithoutAutocast&) = delete;

 private:
  uint32_t before_;
};

}  // namespace plugrad
