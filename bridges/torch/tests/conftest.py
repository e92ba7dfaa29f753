"""The tests run on the devices in PLUGRAD_TORCH_DEVICES, by default on all devices that are found."""
import os

import pytest

os.environ.setdefault("PLUGRAD_FALLBACK", "allow")

import torch  # noqa: E402

import plugrad_torch  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(params=plugrad_torch.devices())
def device(request):
    return plugrad_torch.device(request.param)


@pytest.fixture
def first():
    """The first device: for what does not depend on the plugin."""
    return torch.device("plugrad:0")


@pytest.fixture(autouse=True)
def counts():
    plugrad_torch.reset_counts()
