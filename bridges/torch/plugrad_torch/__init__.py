"""PyTorch on every device of plugrad: import plugrad_torch, then model.to("plugrad:0").

Every device of every plugin is an index of PyTorch's device type "plugrad"; device("vulkan:0") finds the index by plugrad's
own name, and devices() lists the names. PLUGRAD_TORCH_DEVICES=cpu:0,vulkan:0 chooses and orders them. An op without a kernel
runs on the CPU: fallbacks() counts these ops by name, and PLUGRAD_FALLBACK=error|warn|allow or set_fallback() is the policy.
"""
import os

os.environ.setdefault("PLUGRAD_FALLBACK", "warn")

from plugrad_torch import _register  # noqa: E402  (reads the variable)
from plugrad_torch._devices import (counters, description, device, devices, fallbacks, kernels, load_plugin,  # noqa: E402
                                    reset_counts, set_fallback, set_option, tier1_ops)
from plugrad_torch._steps import Step, step  # noqa: E402

_register.register()

__all__ = ["Step", "counters", "description", "device", "devices", "fallbacks", "kernels", "load_plugin", "reset_counts",
           "set_fallback", "set_option", "step", "tier1_ops"]
