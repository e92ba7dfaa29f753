"""PyTorch's functions whose arguments have a different form. They are called only if PyTorch is installed."""
import math


def torch():
    import torch as found
    return found


def named(path):
    """Returns the function of this name; the name may have dots."""
    def called(*args, **given):
        found = torch()
        for part in path.split("."):
            found = getattr(found, part)
        return found(*args, **given)
    return called


def reduction(name):
    """For PyTorch's functions that take keepdim only together with dim."""
    def reduced(x, dim=None, keepdim=False, **named):
        import torch
        return getattr(torch, name)(x, dim=tuple(range(x.ndim)) if dim is None else dim, keepdim=keepdim, **named)
    return reduced


def flat_reduction(name):
    """For PyTorch's functions that take one axis or all axes."""
    def reduced(x, dim=None, keepdim=False):
        import torch
        axes = [axis % x.ndim for axis in (range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else dim)]
        kept = [axis for axis in range(x.ndim) if axis not in axes]
        sizes, reduced_sizes = [x.shape[axis] for axis in kept], [x.shape[axis] for axis in axes]
        moved = x.permute((*kept, *sorted(axes))).reshape(*sizes, math.prod(reduced_sizes))
        found = getattr(torch, name)(moved, dim=-1)
        return found.reshape([1 if axis in axes else x.shape[axis] for axis in range(x.ndim)]) if keepdim else found
    return reduced


def with_tensors(name):
    """For PyTorch's functions that do not take numbers."""
    def called(a, b):
        import torch
        return getattr(torch, name)(a, b if isinstance(b, torch.Tensor) else torch.full((), b).to(torch.result_type(a, b)))
    return called


def norm(x, p=2, dim=None, keepdim=False):
    import torch
    return torch.linalg.vector_norm(x, p, dim, keepdim)


def dropout(x, p, training=True):
    import torch
    return torch.nn.functional.dropout(x, p, training)


def counted_from_start(name, index_at, dim_at):
    """For PyTorch's functions that refuse negative indices. index_at, dim_at: the positions of the arguments."""
    def called(*given, **named):
        import torch
        args = list(given)
        index, extent = args[index_at], args[0].shape[args[dim_at]]
        args[index_at] = index.where(index >= 0, index + extent)
        return getattr(torch, name)(*args, **named)
    return called


def peer_where_unique(name):
    """For PyTorch's functions that keep any of several elements written to one place: every index gets the last of these
    elements."""
    def called(x, dim, index, src):
        import torch
        index = index.where(index >= 0, index + x.shape[dim])
        src = src[tuple(map(slice, index.shape))]
        order = torch.arange(index.shape[dim]).reshape([-1 if i == dim % x.ndim else 1 for i in range(x.ndim)])
        shape = [x.shape[i] if i == dim % x.ndim else n for i, n in enumerate(index.shape)]
        last = torch.zeros(shape, dtype=torch.int64).scatter_reduce(dim, index, order.expand(index.shape), "amax")
        return getattr(torch, name)(x, dim, index, src.gather(dim, last.gather(dim, index)))
    return called


def masked_fill(x, mask, value):
    return x.expand(mask.shape).masked_fill(mask, value)


def attention(query, key, value, **named):
    import torch
    batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    whole = [each.expand(*batch, *each.shape[-2:]) for each in (query, key, value)]
    return torch.nn.functional.scaled_dot_product_attention(*whole, **named)


def gelu(x, **named):
    """PyTorch's gelu is NaN at infinity and infinite at the largest number."""
    import torch
    found = torch.nn.functional.gelu(x, **named)
    return x.where(x > 100, found)


def sign(x):
    """PyTorch's sign is 0 for NaN."""
    return x.sign().where(x == x, x)


def hardswish(x):
    """PyTorch's hardswish is NaN at -infinity."""
    import torch
    return torch.nn.functional.hardswish(x).masked_fill(x == -math.inf, 0)


def answer(name):
    """Returns the answer as a tensor of one bool."""
    def called(*args, **named):
        import torch
        return torch.tensor(getattr(torch, name)(*args, **named))
    return called


def signbit(x):
    """PyTorch's signbit is sometimes true for NaN."""
    return x.signbit() & (x == x)


def trapezoid(y, points, dim):
    """PyTorch's result has the dtype of y if there is no element along the axis."""
    import torch
    found = torch.trapezoid(y, dx=points, dim=dim) if isinstance(points, float) else torch.trapezoid(y, points, dim=dim)
    return found if found.is_floating_point() else found.float()


def gradient(x, spacing, **named):
    import torch
    return torch.gradient(x, spacing=spacing, **named)


def cov(x, **named):
    """PyTorch's cov writes to a leaf."""
    import torch
    return torch.cov(x.clone(), **named)


def quantile(name):
    """PyTorch's quantile takes one axis or all axes, and places of the tensor's dtype."""
    def computed(x, q, dim=None, keepdim=False, **named):
        import torch
        x = x if x.is_floating_point() else x.float()
        axes = [axis % x.ndim for axis in (range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else dim)]
        moved = x.permute(*(axis for axis in range(x.ndim) if axis not in axes), *sorted(axes))
        q = torch.as_tensor(q).to(x.dtype)
        found = getattr(torch, name)(moved.flatten(x.ndim - len(axes)), q, dim=-1, **named)
        kept = [1 if axis in axes else x.shape[axis] for axis in range(x.ndim)]
        return found.reshape(*q.shape, *kept) if keepdim else found
    return computed
