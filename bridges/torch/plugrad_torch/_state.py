"""What a recorded step depends on besides its arguments."""
import functools
import itertools

import torch

_PLAIN = (int, float, bool, str, type(None))


def _values_of(f, arguments):
    """Returns what a function can reach: its closure, its globals, its object and its arguments."""
    values = list(arguments)
    while isinstance(f, functools.partial):
        values += [*f.args, *f.keywords.values()]
        f = f.func
    code = getattr(f, "__code__", None)
    if code is None:
        return [*values, f, getattr(f, "__self__", None)]
    for cell in f.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # not bound yet
            pass
    return [*values, *(f.__globals__[name] for name in code.co_names if name in f.__globals__), getattr(f, "__self__", None)]


class State:
    """The parameters, buffers, and the state and numbers of optimisers that a function reaches.

    A step looks at its state before each replay, so this is written for speed: is_cpu costs an eighth of device.type.
    """

    def __init__(self, f, arguments):
        modules, optimizers = {}, {}
        for value in _values_of(f, arguments):
            attributes = [] if isinstance(value, torch.nn.Module) else list(getattr(value, "__dict__", {}).values())
            for each in (value, *attributes):
                if isinstance(each, torch.nn.Module):
                    modules.update((id(m), m) for m in each.modules())
                elif isinstance(each, torch.optim.Optimizer):
                    optimizers[id(each)] = each
        self.modules, self.optimizers = list(modules.values()), list(optimizers.values())

    def parameters(self):
        """Returns all parameters on a device, each once."""
        seen = [p for m in self.modules if m._parameters for p in m._parameters.values()]
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                seen += group["params"]
        return list({id(p): p for p in seen if p is not None and not p.is_cpu}.values())

    def key(self, parameters):
        """Returns a tuple that changes if a tensor of the state lies elsewhere, or a number is another."""
        key = [p.data_ptr() for p in parameters]
        key += [m.training for m in self.modules]
        key += [_identity(b) for m in self.modules if m._buffers for b in m._buffers.values()]
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                key += [_identity(value) for name, value in group.items() if name != "params"]
            key += map(_identity, itertools.chain.from_iterable(state.values() for state in optimizer.state.values()))
        return tuple(key)


def _identity(value):
    """Returns a value that is equal for two states if a recording of one serves the other."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, (tuple, list)):  # Adam's betas, of numbers or tensors
        return tuple(map(_identity, value))
    if not isinstance(value, torch.Tensor):
        return repr(value)
    if not value.is_cpu:
        return value.data_ptr()
    if value.numel() == 1:
        return value.item()
    return value.data_ptr(), None if value.is_inference() else value._version
