"""The array API standard, version 2024.12, with linalg and fft:
https://data-apis.org/array-api/2024.12

Libraries that take arrays of any kind find this module by `tensor.__array_namespace__()`. Its functions have the
standard's signatures and results. The package has functions of the same names; if PyTorch's function of a name does
something else, the package's function follows PyTorch: plugrad.std and plugrad.var divide by n - 1, plugrad.repeat repeats
the whole tensor, and an empty `axis` means all axes.
"""

from math import e as e, inf as inf, nan as nan, pi as pi
from typing import Any as _Any

from .._plugrad import (bfloat16 as bfloat16, bool_ as bool_, complex64 as complex64, complex128 as complex128,
                        float16 as float16, float32 as float32, float64 as float64, int8 as int8, int16 as int16,
                        int32 as int32, int64 as int64, uint8 as uint8)
from . import fft as fft, linalg as linalg
from ._creation import *  # noqa: F403
from ._dtypes import *  # noqa: F403
from ._elementwise import *  # noqa: F403
from ._info import __array_namespace_info__ as __array_namespace_info__
from ._linear_algebra import *  # noqa: F403
from ._manipulation import *  # noqa: F403
from ._reductions import *  # noqa: F403
from ._searching import *  # noqa: F403
from ._sets import *  # noqa: F403

__array_api_version__ = "2024.12"
bool = bool_
newaxis = None


def _namespace(api_version: str | None) -> _Any:
    """Returns this module. Raises ValueError for a version of the standard that it does not implement."""
    import sys
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f"[__array_namespace__] version {api_version} is not supported: use {__array_api_version__}")
    return sys.modules[__name__]
