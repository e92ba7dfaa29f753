#include <plugrad/func/jvp.hpp>

#include <core/autograd/node.hpp>
#include <core/func/forward.hpp>
#include <plugrad/ops/factories.hpp>

#include <memory>
#include <string>
#include <utility>

namespace plugrad::func {

struct Tangents::Inner {
  std::shared_ptr<Forward> forward;
  stand_ins::Scope scope;
};

Tangents::Tangents() {
  auto forward = std::make_shared<Forward>();
  Forward& transform = *forward;
  inner_.reset(new Inner{std::move(forward), stand_ins::Scope(transform)});
}
Tangents::~Tangents() = default;

Tensor Tangents::pair(const Tensor& x, const Tensor& direction) const {
  require_defined(x, "jvp");
  require_defined(direction, "jvp");
  if (x.shape() != direction.shape() || x.dtype() != direction.dtype() || x.device() != direction.device())
    throw Error(Code::invalid, "[jvp] a tangent of " + description(direction) + " for a primal of " + description(x) +
                                   ": all of these must be equal");
  if (!is_inexact(dtype_of(x)))
    throw Error(Code::invalid, "[jvp] a primal of " + description(x) + " has no tangent: expected a floating dtype");
  return inner_->forward->pair(x, direction);
}
Tensor Tangents::primal(const Tensor& y) const {
  require_defined(y, "jvp");
  return inner_->forward->primal(y);
}
Tensor Tangents::tangent(const Tensor& y) const {
  require_defined(y, "jvp");
  const Tensor found = inner_->forward->tangent(y);
  return found.defined() ? found : zeros(y.shape(), y.dtype(), y.device());
}

Jvp jvp(const Function& f, const Tensors& primals, const Tensors& tangents) {
  if (primals.size() != tangents.size())
    throw Error(Code::invalid, "[jvp] " + std::to_string(tangents.size()) + " tangents for " +
                                   std::to_string(primals.size()) + " primals: give one for each");
  const Tangents forward;
  Tensors arguments;
  for (size_t i = 0; i < primals.size(); ++i) arguments.push_back(forward.pair(primals[i], tangents[i]));
  Jvp made;
  for (const Tensor& each : f(arguments)) {
    made.results.push_back(forward.primal(each));
    made.tangents.push_back(forward.tangent(each));
  }
  return made;
}

}  // namespace plugrad::func
