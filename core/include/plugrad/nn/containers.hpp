// Containers of modules.
#pragma once
#include <plugrad/nn/module.hpp>

#include <concepts>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace plugrad::nn {

// A module of any type, as a list in braces takes it.
struct AnyModule {
  template <std::derived_from<Module> Each> AnyModule(Each given) : module(std::make_shared<Each>(std::move(given))) {}
  std::shared_ptr<Module> module;
};

// Modules by position: parameters are named "0.weight". Several lists may share a module.
class PLUGRAD_API ModuleList : public Module {
 public:
  ModuleList() = default;
  explicit ModuleList(std::vector<std::shared_ptr<Module>> modules) : modules_(std::move(modules)) {}
  // Modules, each of its own type: ModuleList{Linear(2, 8), ReLU()}. Braces are needed: they construct the modules, and so
  // draw their weights, in this order, while C++ leaves the order between parentheses to the compiler.
  explicit ModuleList(std::initializer_list<AnyModule> modules) {
    for (const AnyModule& each : modules) push_back(each.module);
  }
  void members(Members& all) override;
  void push_back(std::shared_ptr<Module> module) { modules_.push_back(std::move(module)); }
  size_t size() const { return modules_.size(); }
  // Throws std::out_of_range.
  Module& operator[](size_t i) const { return *modules_.at(i); }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }

 private:
  std::vector<std::shared_ptr<Module>> modules_;
};

// Applies modules one after another.
class PLUGRAD_API Sequential final : public ModuleList {
 public:
  using ModuleList::ModuleList;
  Tensor forward(const Tensor& x) const override;
};

}  // namespace plugrad::nn
