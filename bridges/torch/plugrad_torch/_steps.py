"""Compiled steps: recorded once, and replayed without PyTorch."""
import ctypes
import functools

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from plugrad_torch._devices import TYPE
from plugrad_torch._library import ops
from plugrad_torch._state import State

_RUN = ctypes.CFUNCTYPE(ctypes.c_int)


class Step:
    """A function from tensors to a list of tensors, recorded for each form of its arguments.

    Step(f)(*tensors, constants="") calls f, or replays a recording of f for tensors with the same shapes, strides and dtypes
    and for equal constants: the text of all else that f depends on. f runs without gradients being recorded. Tensors that f
    uses besides its arguments are part of the recording: a replay uses their current contents.
    """

    def __init__(self, f, name="step", fuse=True):
        self._f, self._error = f, None
        self._handle = ops.new_step(name, fuse)

        def run():
            try:
                with torch.no_grad():
                    ops.set_step_results(list(self._f(*ops.step_arguments())))
                return 0
            except BaseException as error:  # crosses the native library as a number
                self._error = error
                return 1
        self._run = _RUN(run)
        self._address = ctypes.cast(self._run, ctypes.c_void_p).value

    def __call__(self, *tensors, constants=""):
        made = ops.call_step(self._handle, tensors, constants, self._address)
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return made

    def __del__(self):
        ops.delete_step(self._handle)

    @property
    def figures(self):
        """The numbers of calls that were recorded, replayed, and called as they are."""
        return dict(zip(("recorded", "replayed", "called"), ops.step_figures(self._handle)))

    def explain(self):
        """Returns a text that lists the recordings with their calls, fusions and memory."""
        return ops.explain_step(self._handle)


class _RefuseHostState(TorchDispatchMode):
    """Refuses writes to tensors of the CPU: a replay would not repeat them."""

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        for place, argument in enumerate(op._schema.arguments):
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            for tensor in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu":
                    raise RuntimeError(
                        f"a recorded step cannot write to a tensor of the CPU, as {op} does: a replay would not repeat it. "
                        "Give an optimiser that counts its steps capturable=True or fused=True; they count on the device")
        return op(*args, **kwargs)


class _TrainingStep:
    """The callable that step() returns."""

    def __init__(self, f, name, fuse):
        self.f, self.step = f, Step(self._run, name, fuse)
        self.state, self.call = None, None
        self.names, self.forms = {}, {}  # a text for each key, and the form of its results
        functools.update_wrapper(self, f, updated=())

    def __call__(self, *args, **kwargs):
        leaves, spec = (args, None) if not kwargs and all(type(x) is torch.Tensor for x in args) else \
            pytree.tree_flatten((args, kwargs))
        tensors, others = [], []
        for x in leaves:
            is_ours = isinstance(x, torch.Tensor) and x.device.type == TYPE
            if not is_ours and isinstance(x, torch.Tensor):
                raise ValueError(f"a step takes tensors of {TYPE}, but found one of {x.device}: move it to the device first")
            tensors.extend([x] if is_ours else [])
            others.append(x.requires_grad if is_ours else repr(x))
        if self.state is None:  # an optimiser makes its state at its first step, outside any recording
            self.state = State(self.f, leaves)
            return self.f(*args, **kwargs)
        parameters = self.state.parameters()
        before = [p.grad for p in parameters]
        key = (spec and str(spec), *others, *[g is None for g in before], torch.is_autocast_enabled(TYPE),
               torch.get_autocast_dtype(TYPE), *self.state.key(parameters))
        name = self.names.setdefault(key, str(len(self.names)))
        self.call = (leaves, spec, parameters, name)
        made = self.step(*tensors, *[g for g in before if g is not None], constants=name)
        return self._give(made, parameters, name)

    def _run(self, *inside):
        """Runs f inside a recording. Returns f's tensors and the gradients that f made."""
        leaves, spec, parameters, name = self.call
        inside, before = iter(inside), [p.grad for p in parameters]
        leaves = [next(inside).requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x for x in leaves]
        try:
            for p, gradient in zip(parameters, before):
                p.grad = None if gradient is None else next(inside)
            given = [p.grad for p in parameters]
            args, kwargs = (leaves, {}) if spec is None else pytree.tree_unflatten(leaves, spec)
            with torch.enable_grad(), torch.autograd.set_multithreading_enabled(False), _RefuseHostState():
                out, out_spec = pytree.tree_flatten(self.f(*args, **kwargs))
            after = [p.grad for p in parameters]
        finally:
            for p, gradient in zip(parameters, before):
                p.grad = gradient
        fresh = [i for i, gradient in enumerate(after) if gradient is not None and gradient is not given[i]]
        none = [i for i, gradient in enumerate(after) if gradient is None]
        are_tensors = [isinstance(x, torch.Tensor) for x in out]
        self.forms[name] = ([None if isinstance(x, torch.Tensor) else x for x in out], are_tensors, out_spec, fresh, none)
        return [x.detach() for x in out if isinstance(x, torch.Tensor)] + [after[i] for i in fresh]

    def _give(self, made, parameters, name):
        values, are_tensors, spec, fresh, none = self.forms[name]
        made = iter(made)
        out = [next(made) if is_tensor else value for value, is_tensor in zip(values, are_tensors)]
        for i in none:
            parameters[i].grad = None
        for i in fresh:
            parameters[i].grad = next(made)
        return out[0] if spec.is_leaf() else pytree.tree_unflatten(out, spec)

    def explain(self):
        """Returns a text that lists the recordings with their calls, fusions and memory."""
        return self.step.explain()

    @property
    def figures(self):
        """The numbers of calls that were recorded, replayed, and called as they are."""
        return self.step.figures


def step(f=None, *, name="step", fuse=True):
    """Returns a function that records a whole training step and replays it without PyTorch.

        @plugrad_torch.step
        def train(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

    The first call runs f as it is, the second records it, and later calls replay it: with the same effects on parameters,
    gradients, buffers and the state of optimisers, to the same bits. f takes and returns tensors of plugrad's device, also
    in containers. Each of the other values that f takes has its own recording, as have the numbers of an optimiser, such as
    its learning rate. A moved parameter, buffer or state of an optimiser is recorded anew. Results have no graph: call
    backward() inside. f must not read elements of a tensor or use an op that runs on the CPU (RuntimeError names the op),
    and must keep the number of an optimiser's steps on the device: SGD, or fused=True, or capturable=True.
    """
    if f is None:
        return functools.partial(step, name=name, fuse=fuse)
    return _TrainingStep(f, name, fuse)
