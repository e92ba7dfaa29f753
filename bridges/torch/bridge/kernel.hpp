// Registers functions as kernels of PyTorch's ops. Every kernel runs behind one wrapper.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>
#include <bridge/tensors.hpp>
#include <plugrad/autograd/autograd.hpp>

#include <string>
#include <type_traits>

namespace plugrad_torch {

// The CPU's kernel for an op: copies operands to the host and results back. By the core's policy for ops without a kernel
// it throws, warns or is silent; fallback_counts() counts it. Refuses tensors of several devices.
void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// In a catch block: returns for an op that plugrad lacks, and throws what else happened as an exception of PyTorch: an
// index out of range as IndexError, memory that is not there as torch.OutOfMemoryError.
void classify_exception(const char* op);

// Counts the call, and lets torch.use_deterministic_algorithms() decide plugrad's mode.
void begin_kernel();

template <class Op, auto kFunction> struct Kernel;
template <class Op, class R, class... Args, R (*kFunction)(Args...)> struct Kernel<Op, kFunction> {
  static R call(Args... args) {
    try {
      const plugrad::NoGrad unrecorded;
      begin_kernel();
      return kFunction(args...);
    } catch (...) {
      classify_exception(Op::name);
    }
    using Signature = std::remove_pointer_t<decltype(kFunction)>;
    static const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name).template typed<Signature>();
    return c10::impl::BoxedKernelWrapper<Signature>::call(c10::BoxedKernel::makeFromFunction<&run_on_cpu>(), op,
                                                          c10::DispatchKeySet(), args...);
  }
};

// Registers a function with the op's own signature, a struct of at::_ops.
template <class Op, auto kFunction> void kernel(torch::Library& library) {
  std::string name = std::string(Op::name).substr(std::string("aten::").size());
  if (*Op::overload_name) name += std::string(".") + Op::overload_name;
  library.impl(name.c_str(), &Kernel<Op, kFunction>::call);
}

}  // namespace plugrad_torch
