"""Mixed precision: products in bf16 or f16, sums and losses in f32, while parameters stay f32."""

from typing import Any

from . import _plugrad
from ._modes import _Mode
from ._plugrad import (Device, get_autocast_dtype as get_autocast_dtype, is_autocast_enabled as is_autocast_enabled)

__all__ = ["GradScaler", "autocast", "get_autocast_dtype", "is_autocast_enabled"]


class autocast(_Mode):
    """Inside `with autocast():`, or in a function with `@autocast()`, ops choose the dtype they compute in.

    matmul and all functions made of it, convolutions and scaled_dot_product_attention convert floating operands to `dtype`,
    bf16 or f16, and return it. softmax, normalisations, sums, means, powers, exponentials, logarithms, distances and losses
    convert bf16 and f16 to f32. All other functions are unaffected, and so are products with an f64 operand. The gradient
    of an f32 parameter is f32. Call backward() outside: it computes in the dtypes of the forward pass in any case.

    device_type: "cpu", "cuda", .. does not convert tensors on devices of other backends. enabled: False switches an outer
    autocast off. cache_enabled: converts a parameter once for all its uses. Raises ValueError for any other dtype.
    """

    def __init__(self, device_type: str | Device = "", dtype: Any = None, enabled: bool = True,
                 cache_enabled: bool = True) -> None:
        super().__init__()
        self._given = (device_type, dtype, enabled, cache_enabled)

    def _guard(self) -> Any:
        device, dtype, enabled, cache = self._given
        return _plugrad._Autocast(dtype, enabled, str(device).partition(":")[0], cache)

    def _recreate_cm(self) -> "autocast":
        return type(self)(*self._given)


class GradScaler(_plugrad.GradScaler):
    __doc__ = f"""{_plugrad.GradScaler.__doc__}

    device: accepted and ignored: a scaler serves all devices. A number in its place is init_scale."""

    def __init__(self, device: Any = "cuda", init_scale: float = 65536.0, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True) -> None:
        is_number = isinstance(device, (int, float)) and not isinstance(device, bool)
        super().__init__(device if is_number else init_scale, growth_factor, backoff_factor, growth_interval, enabled)
