"""Plugins of other packages: an entry point of the group `plugrad.plugins` returns a directory with plugins.

The entry points are called before the first device is opened, not at import, because such a package may import plugrad
itself. PLUGRAD_ENTRY_POINTS=off ignores them.
"""

import os
import warnings
from importlib import metadata

GROUP = "plugrad.plugins"


def directories() -> list[str]:
    if os.environ.get("PLUGRAD_ENTRY_POINTS", "on") == "off":
        return []
    found = []
    for entry in metadata.entry_points(group=GROUP):
        try:
            found.append(os.path.abspath(os.fspath(entry.load()())))
        except Exception as error:  # somebody else's broken package must not disable the cpu
            warnings.warn(f"the plugins of {entry.value} are left out: {type(error).__name__}: {error}", RuntimeWarning,
                          stacklevel=2)
    return found[::-1]  # each directory is searched before earlier additions
