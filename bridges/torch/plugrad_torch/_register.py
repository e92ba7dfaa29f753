"""Makes plugrad's devices known to PyTorch."""
import atexit
import os
import sys
import types

import torch

from plugrad_torch import _compile
from plugrad_torch._devices import TYPE, devices, index_of
from plugrad_torch._library import ops


class _Current:
    """with torch.plugrad.device(i): the current device inside."""

    def __init__(self, device):
        self.index = index_of(device)

    def __enter__(self):
        self.before = torch.accelerator.current_device_index()
        torch.accelerator.set_device_index(self.index)
        return self

    def __exit__(self, *error):
        torch.accelerator.set_device_index(self.before)


_forked = False


def _after_fork():
    global _forked
    _forked = True


def _module():
    module = types.ModuleType(f"torch.{TYPE}", "Devices of plugrad, in the form of torch.cuda.")
    accelerator = torch.accelerator
    module.device = _Current
    module.device_count = lambda: len(devices())
    module.is_available = lambda: len(devices()) > 0
    module.is_initialized = lambda: True
    module.init = module._lazy_init = lambda: None
    module._is_in_bad_fork = lambda: _forked
    module.current_device = accelerator.current_device_index
    module.set_device = lambda device: accelerator.set_device_index(index_of(device))
    module.synchronize = lambda device=None: accelerator.synchronize(index_of(device))
    module.current_stream = lambda device=None: accelerator.current_stream(index_of(device))
    module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
    module.get_device_name = lambda device=None: devices()[index_of(device)]
    module.Event, module.Stream = torch.Event, torch.Stream
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_stats",
                 "reset_peak_memory_stats", "empty_cache"):
        setattr(module, name, getattr(accelerator, name, None))
    module.manual_seed = lambda seed: ops.manual_seed(index_of(), seed)
    module.manual_seed_all = lambda seed: [ops.manual_seed(i, seed) for i in range(len(devices()))] and None
    module.seed = lambda: module.manual_seed(torch.seed())
    module.initial_seed = lambda: ops.initial_seed(index_of())
    module.get_rng_state = lambda device=None: ops.generator_state(index_of(device))
    module.set_rng_state = lambda state, device=None: ops.set_generator_state(index_of(device), state)
    return module


def register():
    """Renames PyTorch's device type for other libraries and adds its module, torch.plugrad. Runs at import."""
    torch.utils.rename_privateuse1_backend(TYPE)
    module = _module()
    torch._register_device_module(TYPE, module)
    sys.modules[f"torch.{TYPE}"] = module
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_packed_sequence=True,
                                                         for_storage=True)
    # Module.to() makes new parameters where PyTorch considers the types of tensors incompatible, as it does for this type,
    # and so unties tied weights. Swapping keeps the Parameter objects.
    torch.__future__.set_swap_module_params_on_conversion(True)
    # Backward on the caller's thread, as for the CPU: a device's own thread costs a hand-over of 40 us for each pass.
    if not torch.cuda.is_available():
        torch._C._set_multithreading_enabled(False)
    os.register_at_fork(after_in_child=_after_fork)
    atexit.register(ops.finish)
    _compile.register()
