"""torch.compile(model, backend="plugrad"): each graph of aot_autograd is a compiled step."""
import torch

from plugrad_torch._devices import TYPE


class _Graph:
    """A graph of PyTorch as a step. Sizes that change are constants: each has its own recording."""

    def __init__(self, graph, name):
        from plugrad_torch._steps import Step
        self.graph, self.inputs, self.forms = graph, None, {}
        self.step = Step(self._run, name)

    def __call__(self, *inputs):
        tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
        others = [None if isinstance(x, torch.Tensor) else x for x in inputs]
        if not any(x.device.type == TYPE for x in tensors) or any(x.device.type != TYPE for x in tensors):
            return self.graph(*inputs)  # without plugrad, or with a tensor of the CPU, whose contents a recording would keep
        self.inputs = inputs
        key = repr(others)
        made = iter(self.step(*(x.detach() for x in tensors), constants=key))
        return [next(made) if is_tensor else value for is_tensor, value in self.forms[key]]

    def _run(self, *inside):
        inside = iter(inside)
        out = self.graph(*[next(inside) if isinstance(x, torch.Tensor) else x for x in self.inputs])
        others = [None if isinstance(x, torch.Tensor) else x for x in self.inputs]
        self.forms[repr(others)] = [(isinstance(x, torch.Tensor), None if isinstance(x, torch.Tensor) else x) for x in out]
        return [x for x in out if isinstance(x, torch.Tensor)]


def _reshape_views(graph):
    """Makes views of the graph reshapes. The graph is functional, so that a copy changes nothing, and plugrad's results are
    dense where PyTorch's own kernels keep the order of an operand's axes."""
    for node in graph.graph.nodes:
        if node.target in (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default):
            node.target = torch.ops.aten.reshape.default
    graph.recompile()


def _compiler(name):
    def compile_graph(graph, example_inputs):
        from functorch.compile import make_boxed_func
        _reshape_views(graph)
        return make_boxed_func(_Graph(graph, name))
    return compile_graph


def backend(graph, example_inputs):
    """A backend of torch.compile."""
    from torch._dynamo.backends.common import aot_autograd
    return aot_autograd(fw_compiler=_compiler("forward"), bw_compiler=_compiler("backward"),
                        inference_compiler=_compiler("inference"))(graph, example_inputs)


def register():
    from torch._dynamo import register_backend
    register_backend(backend, name=TYPE)
