"""The name of torch.utils.data.distributed."""

from ...data import DistributedSampler

__all__ = ["DistributedSampler"]
