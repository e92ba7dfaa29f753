"""plugrad.data under the name of torch.utils.data."""

from ...data import (BatchSampler, ConcatDataset, DataLoader, Dataset, DistributedSampler, IterableDataset, RandomSampler,
                     Subset, TensorDataset, default_collate, default_convert, random_split)
from . import distributed as distributed

__all__ = ["BatchSampler", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset",
           "RandomSampler", "Subset", "TensorDataset", "default_collate", "default_convert", "distributed", "random_split"]
