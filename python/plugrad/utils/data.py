"""plugrad.data under the name of torch.utils.data."""

from ..data import (BatchSampler, ConcatDataset, DataLoader, Dataset, IterableDataset, RandomSampler, Subset, TensorDataset,
                    default_collate, default_convert, random_split)

__all__ = ["BatchSampler", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset", "RandomSampler", "Subset",
           "TensorDataset", "default_collate", "default_convert", "random_split"]
