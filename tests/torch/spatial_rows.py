"""Pooling, convolution, windows as columns and resampling: see write_golden.py."""
import torch
from torch.nn import functional as F
from write_golden import f64, spread

TIES = f64([1, 1, 0, 2, 2, 2, 2, 0, 1, 0, 0, 1], (1, 3, 4))
POSITIVE = spread((2, 4, 5), 0.5, 3)
LINE, PLANE, SPACE = (2, 2, 7), (1, 2, 5, 6), (1, 2, 3, 4, 5)
GRID = f64([-0.9, 0.3, 0.25, -0.6, 1.7, 0.4, -1.3, -2.4, 0.1, 0.95, 0.62, 5.2], (1, 2, 3, 2))
GRID_IN_SPACE = f64([-0.9, 0.3, 0.25, -0.6, 1.7, 0.4, -1.3, -2.4, 0.1, 0.95, 0.62, 0.2], (1, 1, 2, 2, 3))
INDICES = torch.tensor([[0, 3, 5], [1, 2, 6]])


def maxima():
    yield "max_pool1d ceil", lambda x: F.max_pool1d(x, 2, 2, 0, 1, True, True), [LINE]
    yield "max_pool1d padded ceil", lambda x: F.max_pool1d(x, 3, 3, 1, 1, True, True), [LINE]
    yield "max_pool2d ties", lambda x: F.max_pool2d(x, 2, 1, return_indices=True), [TIES]
    yield "max_pool2d dilated", lambda x: F.max_pool2d(x, (2, 3), 2, 1, (3, 1), False, True), [PLANE]
    yield "max_pool2d ceil", lambda x: F.max_pool2d(x, 3, 2, 1, 1, True, True), [PLANE]
    yield "max_pool3d", lambda x: F.max_pool3d(x, 2, 1, (0, 1, 1), return_indices=True), [SPACE]
    yield "max_pool3d ceil", lambda x: F.max_pool3d(x, (2, 3, 2), 2, 0, 1, True, True), [SPACE]
    yield "adaptive_max_pool1d", lambda x: F.adaptive_max_pool1d(x, 3, True), [LINE]
    yield "adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (2, 4), True), [PLANE]
    yield "adaptive_max_pool2d ties", lambda x: F.adaptive_max_pool2d(x, (2, 3), True), [TIES]
    yield "adaptive_max_pool3d", lambda x: F.adaptive_max_pool3d(x, (2, 3, 4), True), [SPACE]
    yield "max_unpool1d", lambda x, at: F.max_unpool1d(x, at, 2), [(2, 3), INDICES.clamp(max=5)]
    yield "max_unpool1d size", lambda x, at: F.max_unpool1d(x, at, 2, output_size=(7,)), [(2, 3), INDICES]
    yield "max_unpool2d", lambda x, at: F.max_unpool2d(x, at, 2, 2, 0), [(1, 2, 3), INDICES[None]]
    yield "max_unpool2d repeated", lambda x, at: F.max_unpool2d(x, at, 3, 1, 0), [TIES, TIES.long() * 4]
    yield "max_unpool3d", lambda x, at: F.max_unpool3d(x, at, (1, 2, 2)), [(1, 1, 2, 3), INDICES[None, None]]


def means():
    yield "avg_pool1d ceil", lambda x: F.avg_pool1d(x, 3, 2, 1, True), [LINE]
    yield "avg_pool1d bare", lambda x: F.avg_pool1d(x, 2, 2, 1, True, False), [LINE]
    yield "avg_pool2d ceil", lambda x: F.avg_pool2d(x, (2, 3), (2, 3), (1, 0), True), [PLANE]
    yield "avg_pool2d bare ceil", lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), [PLANE]
    yield "avg_pool2d divisor", lambda x: F.avg_pool2d(x, 2, 2, 1, True, True, 3), [PLANE]
    yield "avg_pool3d", lambda x: F.avg_pool3d(x, 2, 1, 1), [SPACE]
    yield "avg_pool3d bare ceil", lambda x: F.avg_pool3d(x, 2, 2, 1, True, False), [SPACE]
    yield "lp_pool1d", lambda x: F.lp_pool1d(x, 3, 2, ceil_mode=True), [POSITIVE]
    yield "lp_pool2d", lambda x: F.lp_pool2d(x, 2, 2), [PLANE]
    yield "lp_pool2d zeros", lambda x: F.lp_pool2d(x, 2, 2), [torch.zeros(1, 2, 2, dtype=torch.float64)]
    yield "lp_pool3d", lambda x: F.lp_pool3d(x, 1.5, 2, 1), [spread((1, 2, 3, 2), 0.5, 3)]
    yield "adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 3), [LINE]
    yield "adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (3, 8)), [PLANE]
    yield "adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, (2, 3, 5)), [SPACE]


def convolutions():
    yield "conv1d same", lambda x, w, b: F.conv1d(x, w, b, padding="same"), [(2, 2, 5), (3, 2, 2), (3,)]
    yield "conv2d same", lambda x, w: F.conv2d(x, w, padding="same", dilation=(1, 2), groups=2), [PLANE, (2, 1, 2, 4)]
    yield "conv2d valid", lambda x, w: F.conv2d(x, w, stride=2, padding="valid"), [PLANE, (2, 2, 2, 3)]
    yield "conv3d same", lambda x, w: F.conv3d(x, w, padding="same"), [(2, 2, 3, 2), (1, 2, 2, 3, 1)]
    yield ("conv_transpose1d", lambda x, w, b: F.conv_transpose1d(x, w, b, 3, 1, 2, 2, 2),
           [(2, 2, 4), (2, 2, 3), (4,)])
    yield "conv_transpose1d bare", F.conv_transpose1d, [(2, 4), (2, 1, 3)]
    yield ("conv_transpose3d", lambda x, w, b: F.conv_transpose3d(x, w, b, (1, 2, 2), (0, 1, 0), (0, 1, 0), 1, (2, 1, 1)),
           [(1, 2, 2, 2, 3), (2, 3, 2, 2, 1), (3,)])
    yield "unfold", lambda x: F.unfold(x, (2, 3), 1, (1, 0), (2, 1)), [PLANE]
    yield "unfold dilated", lambda x: F.unfold(x, 2, 2), [(2, 4, 5)]
    yield "fold", lambda x: F.fold(x, (4, 5), (2, 3), 1, (1, 0), (2, 1)), [(2, 12, 9)]
    yield "fold dilated", lambda x: F.fold(x, (4, 5), 2, 2), [(8, 6)]


def sizes():
    for mode in ("nearest", "nearest-exact", "area"):
        yield f"interpolate {mode} 1", lambda x, m=mode: F.interpolate(x, 5, mode=m), [LINE]
        yield f"interpolate {mode} 2", lambda x, m=mode: F.interpolate(x, scale_factor=(1.7, 0.6), mode=m), [PLANE]
        yield f"interpolate {mode} 3", lambda x, m=mode: F.interpolate(x, (4, 3, 5), mode=m), [SPACE]
    for mode, shape, size in (("linear", LINE, 10), ("bilinear", PLANE, (7, 4)), ("trilinear", SPACE, (2, 7, 5)),
                              ("bicubic", PLANE, (7, 4))):
        for aligns in (False, True):
            yield (f"interpolate {mode} {aligns}",
                   lambda x, m=mode, s=size, a=aligns: F.interpolate(x, s, mode=m, align_corners=a), [shape])
        yield f"interpolate {mode} scaled", lambda x, m=mode: F.interpolate(x, scale_factor=1.3, mode=m), [shape]
        yield (f"interpolate {mode} recomputed",
               lambda x, m=mode: F.interpolate(x, scale_factor=1.3, mode=m, recompute_scale_factor=True), [shape])
    for mode in ("bilinear", "bicubic"):
        for size in ((2, 3), (9, 6)):
            yield (f"interpolate {mode} antialias {size[0]}",
                   lambda x, m=mode, s=size: F.interpolate(x, s, mode=m, antialias=True), [PLANE])


def grids():
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for aligns in (False, True):
                how = {"mode": mode, "padding_mode": padding, "align_corners": aligns}
                name = f"grid_sample {mode} {padding} {aligns}"
                yield name, lambda x, grid, h=how: F.grid_sample(x, grid, **h), [(1, 2, 3, 4), GRID]
                if mode != "bicubic":
                    yield f"{name} 3", lambda x, grid, h=how: F.grid_sample(x, grid, **h), [(1, 2, 2, 3, 2), GRID_IN_SPACE]
    for aligns in (False, True):
        yield f"affine_grid {aligns}", lambda t, a=aligns: F.affine_grid(t, (2, 1, 3, 1), align_corners=a), [(2, 2, 3)]
        yield f"affine_grid 3 {aligns}", lambda t, a=aligns: F.affine_grid(t, (1, 1, 2, 3, 2), align_corners=a), [(1, 3, 4)]


ROWS = [*maxima(), *means(), *convolutions(), *sizes(), *grids()]
