"""How tensors print, by the names of PyTorch and NumPy."""

import math
import sys
from typing import Any

from . import _plugrad

_DEFAULT = _plugrad.get_printoptions()
_PROFILES: dict[str, dict[str, Any]] = {
    "default": _DEFAULT,
    "short": {**_DEFAULT, "precision": 2, "edgeitems": 2},
    "full": {**_DEFAULT, "threshold": sys.maxsize},
}
_UNCHANGED: Any = object()


def set_printoptions(precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None,
                     linewidth: int | None = None, profile: str | None = None,
                     sci_mode: bool | None = _UNCHANGED) -> None:
    """Sets the printing of tensors in the whole process; omitted settings stay.

    precision: digits after the point, at most. threshold: with more elements than this a tensor shows only edgeitems
    elements at each end of its axes. linewidth: characters of a line. sci_mode: True for 1.5e+03, False for 1500., None to
    choose by the numbers. profile: "default", "short" or "full"; the remaining arguments change it. Raises ValueError.
    """
    if profile is not None and profile not in _PROFILES:
        raise ValueError(f"[set_printoptions] profile '{profile}' is unknown: default, short or full expected")
    options = dict(_PROFILES[profile] if profile else _plugrad.get_printoptions())
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    options.update({name: value for name, value in given.items() if value is not None})
    if sci_mode is not _UNCHANGED:
        options["sci_mode"] = sci_mode
    limit = options["threshold"]
    options["threshold"] = sys.maxsize if limit == math.inf else int(limit)
    _plugrad._set_print_options(*options.values())
