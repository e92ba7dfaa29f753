"""The devices by name, their counters, and the ops that ran on the CPU."""
import torch

from plugrad_torch._library import ops

#: The name of PyTorch's device type. A maker's own package may set it before the first import of plugrad_torch.
TYPE = "plugrad"

_COUNTERS = ("kernels", "layout_copies", "widened", "decompositions", "host_fallbacks", "uploads", "downloads")


def devices():
    """Returns plugrad's names of all devices, in the order of their indices. Opens no device."""
    return list(ops.devices())


def device(name):
    """Returns the torch.device of one of plugrad's devices: "vulkan:0", or "cpu" for "cpu:0".

    Raises ValueError for an unknown name.
    """
    return torch.device(TYPE, _index_of_name(name))


def _index_of_name(name):
    names = devices()
    for full in (name, f"{name}:0"):
        if full in names:
            return names.index(full)
    raise ValueError(f"plugrad has no device '{name}'; the devices are: {' '.join(names) or 'none'}")


def index_of(device=None):
    """Returns the index of a torch.device, an index, or a name of PyTorch or plugrad; the current device's for None."""
    if device is None:
        return torch.accelerator.current_device_index()
    if isinstance(device, int):
        return device
    if isinstance(device, str) and device.split(":")[0] != TYPE:
        return _index_of_name(device)
    device = torch.device(device)
    if device.type != TYPE:
        raise ValueError(f"a device of type {TYPE} expected, not {device}")
    return torch.accelerator.current_device_index() if device.index is None else device.index


def description(device=None):
    """Returns the plugin's description of a device: "AMD EPYC, 2 threads"."""
    return ops.device_description(index_of(device))


def counters(device=None):
    """Returns counts of a device's work since it was opened: kernels, copies, decompositions, uploads, downloads."""
    return dict(zip(_COUNTERS, ops.device_counters(index_of(device))))


def fallbacks():
    """Returns the names of the ops that ran on the CPU for lack of a kernel, with their counts."""
    return dict(zip(ops.fallback_names(), ops.fallback_numbers()))


def kernels():
    """Returns the number of ops that ran on a device of plugrad."""
    return ops.kernel_count()


def reset_counts():
    """Sets the counts of fallbacks() and kernels() to 0."""
    ops.reset_counts()


def set_fallback(policy):
    """Sets what happens to an op without a kernel: "error", "warn" (the default here) or "allow"."""
    ops.set_fallback(policy)


def set_option(device, key, value):
    """Sets an option of a backend ("vulkan") or a device ("cuda:1") before its first use."""
    ops.set_option(device, key, str(value))


def tier1_ops():
    """Returns the names of the ops that a plugin may leave out, as a list of a plugin's option: "RELU,MATMUL_ADD"."""
    return ops.tier1_ops()


def load_plugin(path):
    """Loads a plugin's file by its absolute path. Its devices have an index if this comes before the first use of any."""
    ops.load_plugin(str(path))
