"""A sampler that remembers what was processed, so that training goes on in the middle of an epoch."""

from __future__ import annotations

import math
import random
from typing import Any, Dict, Iterator, List, Set

import torch.utils.data

from kolo import _core


class ElasticSampler(torch.utils.data.Sampler):
    """Each rank gets its part of the samples that were not processed yet in this epoch.

    Call record_batch after each batch, and set_epoch at the end of an epoch. All ranks process
    batches of one size, so the number of processed samples says which ones they were.
    """

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.processed_num = 0
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
        self.processed_num = 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """A batch of this size was processed, on every rank."""
        self.processed_num += batch_size * self.num_replicas

    @property
    def processed_indices(self) -> Set[int]:
        """The samples of this epoch that were processed by any rank."""
        return set(self._order()[: self.processed_num])

    def get_indices(self, batch_idx: int, batch_size: int) -> List[int]:
        """The samples of this rank's batch with this number."""
        begin = batch_idx * batch_size
        return self.indices[begin : begin + batch_size]

    def state_dict(self) -> Dict[str, Any]:
        """What is needed to go on from here."""
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Goes on from where state_dict() was taken."""
        self.epoch = state_dict["epoch"]
        self.processed_num = state_dict["processed_num"]
        self.reset()

    def reset(self) -> None:
        """Deals out what is left among the ranks of now."""
        self.num_replicas = _core.size()
        self.rank = _core.rank()
        left = self._order()[self.processed_num :]
        self.remaining_indices = left
        self.num_samples = int(math.ceil(len(left) / self.num_replicas))
        self.total_size = self.num_samples * self.num_replicas
        padded = list(left)
        while left and len(padded) < self.total_size:
            padded += left[: self.total_size - len(padded)]
        self.indices = padded[self.rank : self.total_size : self.num_replicas]

    def _order(self) -> List[int]:
        """All samples as this epoch goes through them, the same on every rank."""
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        return order

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)

    def __len__(self) -> int:
        return self.num_samples
