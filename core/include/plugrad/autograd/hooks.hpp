// Functions of the user, called in a backward pass. Tensor::register_hook registers a function.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace plugrad {

struct Hooks;

// Removes a hook. It keeps neither the tensor nor its graph. Threads may use it and copies of it freely.
class PLUGRAD_API HookHandle {
 public:
  HookHandle() = default;
  HookHandle(std::weak_ptr<Hooks> hooks, uint64_t id) : hooks_(std::move(hooks)), id_(id) {}
  // Later passes no longer call the hook; a running pass may call it once more. Does nothing if it was removed before.
  void remove();

 private:
  std::weak_ptr<Hooks> hooks_;
  uint64_t id_ = 0;
};

namespace detail {
PLUGRAD_API HookHandle add_hook(const Tensor& x, std::function<Tensor(const Tensor& grad)> hook);
PLUGRAD_API HookHandle add_accumulate_hook(const Tensor& x, std::function<void(Tensor& leaf)> hook);
}  // namespace detail

template <class F> HookHandle Tensor::register_hook(F hook) const { return detail::add_hook(*this, std::move(hook)); }
template <class F> HookHandle Tensor::register_post_accumulate_grad_hook(F hook) const {
  return detail::add_accumulate_hook(*this, std::move(hook));
}

}  // namespace plugrad
