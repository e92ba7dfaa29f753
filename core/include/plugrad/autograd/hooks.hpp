// Functions of the user that run in a backward pass. Tensor::register_hook registers one.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <functional>
#include <memory>

namespace plugrad {

struct Hooks;

// Removes a hook. It keeps neither the tensor nor its graph. Threads may use it and copies of it freely.
class PLUGRAD_API HookHandle {
 public:
  HookHandle() = default;
  HookHandle(std::weak_ptr<Hooks> hooks, uint64_t id) : hooks_(std::move(hooks)), id_(id) {}
  // Later passes no longer call the hook; a pass that runs may call it once more. Does nothing if it was removed before.
  void remove();

 private:
  std::weak_ptr<Hooks> hooks_;
  uint64_t id_ = 0;
};

}  // namespace plugrad
