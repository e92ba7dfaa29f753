"""Plugins of other packages: an entry point of the group `plugrad.plugins` is a function that answers a directory with plugin files.

They are asked when the first device is, not at import, for such a package may import plugrad itself. PLUGRAD_ENTRY_POINTS=off
ignores them.
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
        except Exception as error:  # a broken package of somebody else's must not keep the cpu from working
            warnings.warn(f"the plugins of {entry.value} are left out: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=2)
    return found[::-1]  # each is put in front of those before it
