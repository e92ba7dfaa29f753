"""The parts of the package's metadata that depend on the PyTorch it is built for. For scikit-build-core."""
import importlib.metadata

VERSION = "0.1.0"


def dynamic_metadata(field, settings=None):
    """Returns the version, such as 0.1.0+torch2.15, or the dependencies."""
    minor = ".".join(importlib.metadata.version("torch").split(".")[:2])
    return f"{VERSION}+torch{minor}" if field == "version" else ["plugrad==0.1.*", f"torch=={minor}.*"]
