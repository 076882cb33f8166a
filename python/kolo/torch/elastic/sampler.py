"""A sampler that remembers what was processed, so that training goes on in the middle of an epoch."""

from __future__ import annotations

import math
import random
from typing import Any, Dict, Iterator, List, Set

import torch.utils.data

from kolo import _core


class ElasticSampler(torch.utils.data.Sampler):
    """Each rank gets its part of the samples that were not processed yet in this epoch.

    Call record_batch after each batch, and set_epoch at the end of an epoch.
    """

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.processed_indices: Set[int] = set()
        self.num_replicas = 0
        self.rank = 0
        self.remaining_indices: List[int] = []
        self.indices: List[int] = []
        self.num_samples = 0
        self.total_size = 0
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begins another epoch, with nothing processed."""
        self.epoch = epoch
        self.processed_indices = set()
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """The batch with this number was processed, on every rank."""
        self.record_indices(set(self.get_indices(batch_idx, batch_size)))

    def record_indices(self, indices: Set[int]) -> None:
        """These samples were processed."""
        self.processed_indices.update(indices)

    def get_indices(self, batch_idx: int, batch_size: int) -> List[int]:
        """The samples of this rank's batch with this number."""
        begin = batch_idx * batch_size
        return self.indices[begin : min(begin + batch_size, len(self.indices))]

    def state_dict(self) -> Dict[str, Any]:
        """What is needed to go on from here."""
        return {"epoch": self.epoch, "processed_indices": self.processed_indices}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Goes on from where state_dict() was taken."""
        self.epoch = state_dict["epoch"]
        self.processed_indices = set(state_dict["processed_indices"])
        self.reset()

    def reset(self) -> None:
        """Deals out what is left among the ranks of now."""
        self.num_replicas = _core.size()
        self.rank = _core.rank()
        left = [i for i in range(len(self.dataset)) if i not in self.processed_indices]
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(left)
        self.remaining_indices = left
        self.num_samples = int(math.ceil(len(left) / self.num_replicas))
        self.total_size = self.num_samples * self.num_replicas
        padded = list(left)
        while left and len(padded) < self.total_size:
            padded += left[: self.total_size - len(padded)]
        self.indices = padded[self.rank : self.total_size : self.num_replicas]

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)

    def __len__(self) -> int:
        return self.num_samples
