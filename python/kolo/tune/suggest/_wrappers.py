"""Searches around others: with fewer trials at once, or with several trials of each suggestion."""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Optional, Set, Tuple

from kolo._errors import InvalidArgumentError
from kolo.tune.suggest._searcher import Searcher

# The key by which a trial learns which repetition it is.
TRIAL_INDEX = "__trial_index__"


class ConcurrencyLimiter(Searcher):
    """A search with at most so many trials at once. ``batch``: the next ones begin when all of them
    have ended, and the search is told of them then."""

    def __init__(self, searcher: Searcher, max_concurrent: int, batch: bool = False) -> None:
        if not isinstance(searcher, Searcher):
            raise InvalidArgumentError("ConcurrencyLimiter: the first argument must be a search")
        if (
            isinstance(max_concurrent, bool)
            or not isinstance(max_concurrent, int)
            or max_concurrent < 1
        ):
            raise InvalidArgumentError(
                f"ConcurrencyLimiter: max_concurrent must be positive, not {max_concurrent!r}"
            )
        super().__init__(searcher.metric, searcher.mode, searcher.points_to_evaluate)
        self.searcher = searcher
        self.name = searcher.name
        self.settings = searcher.settings
        self.seed = searcher.seed
        self.space = searcher.space
        self.known = searcher.known
        self.max_concurrent = max_concurrent
        self.batch = batch
        self._live: Set[str] = set()
        self._ended: Dict[str, Tuple[Any, bool]] = {}

    def is_custom(self) -> bool:
        # Batches are kept here, so that what kolo's own searches know of is asked for here, too.
        return self.batch or self.searcher.is_custom()

    def set_search_properties(
        self, metric: Any, mode: Any, config: Dict[str, Any], **spec: Any
    ) -> bool:
        took_it = self.searcher.set_search_properties(metric, mode, config, **spec)
        self.metric, self.mode = self.searcher.metric, self.searcher.mode
        return took_it

    def suggest(self, trial_id: str) -> Any:
        if len(self._live) >= self.max_concurrent:
            return None
        suggestion = self.searcher.suggest(trial_id)
        if suggestion not in (None, Searcher.FINISHED):
            self._live.add(trial_id)
        return suggestion

    def on_trial_result(self, trial_id: str, result: Dict[str, Any]) -> None:
        self.searcher.on_trial_result(trial_id, result)

    def on_trial_complete(
        self, trial_id: str, result: Optional[Dict[str, Any]] = None, error: bool = False
    ) -> None:
        if trial_id not in self._live:
            return
        if not self.batch:
            self._live.discard(trial_id)
            self.searcher.on_trial_complete(trial_id, result=result, error=error)
            return
        self._ended[trial_id] = (result, error)
        self._flush_if_all_ended()

    def on_trial_cleanup(self, trial_id: str) -> None:
        """A trial was taken out before its end."""
        self._live.discard(trial_id)
        self._ended.pop(trial_id, None)
        self._flush_if_all_ended()

    def _flush_if_all_ended(self) -> None:
        # A batch that nobody filled ends when nothing runs any more.
        if self._ended and len(self._ended) == len(self._live):
            self.flush()

    def flush(self) -> None:
        """The search is told of a batch, and its places are free again."""
        ended, self._ended = self._ended, {}
        for trial_id, (result, error) in ended.items():
            self._live.discard(trial_id)
            self.searcher.on_trial_complete(trial_id, result=result, error=error)

    def get_state(self) -> Dict[str, Any]:
        return {"searcher": self.searcher.get_state(), "live": self._live, "ended": self._ended}

    def set_state(self, state: Dict[str, Any]) -> None:
        self.searcher.set_state(state["searcher"])
        self._live = state["live"]
        self._ended = state["ended"]


class _Group:
    """The trials of one suggestion."""

    def __init__(self, first: str, config: Dict[str, Any]) -> None:
        self.first = first
        self.config = config
        self.members = 0
        self.scores: List[List[float]] = []
        self.ended = 0


class Repeater(Searcher):
    """Tries each suggestion several times, and tells the search the mean of those that did not fail
    and have finite results; if none has, that the suggestion failed. With ``set_index`` a trial finds
    the number of its repetition in config["__trial_index__"]."""

    def __init__(self, searcher: Searcher, repeat: int = 1, set_index: bool = True) -> None:
        if not isinstance(searcher, Searcher):
            raise InvalidArgumentError("Repeater: the first argument must be a search")
        if isinstance(repeat, bool) or not isinstance(repeat, int) or repeat < 1:
            raise InvalidArgumentError(f"Repeater: repeat must be positive, not {repeat!r}")
        super().__init__(searcher.metric, searcher.mode)
        self.searcher = searcher
        self.repeat = repeat
        self._set_index = set_index
        self._open: Optional[_Group] = None
        self._groups: Dict[str, _Group] = {}

    def is_custom(self) -> bool:
        return True

    def set_search_properties(
        self, metric: Any, mode: Any, config: Dict[str, Any], **spec: Any
    ) -> bool:
        took_it = self.searcher.set_search_properties(metric, mode, config, **spec)
        self.metric, self.mode = self.searcher.metric, self.searcher.mode
        return took_it

    def suggest(self, trial_id: str) -> Any:
        if self._open is None:
            suggestion = self.searcher.suggest(trial_id)
            if not isinstance(suggestion, dict):
                return suggestion
            self._open = _Group(trial_id, suggestion)
        group = self._groups[trial_id] = self._open
        config = copy.deepcopy(group.config)
        if self._set_index:
            config[TRIAL_INDEX] = group.members
        group.members += 1
        if group.members == self.repeat:
            self._open = None
        return config

    def on_trial_complete(
        self, trial_id: str, result: Optional[Dict[str, Any]] = None, error: bool = False
    ) -> None:
        group = self._groups.pop(trial_id, None)
        if group is None:
            return
        group.ended += 1
        values = None if error else self._values(result)
        if values is not None:
            group.scores.append(values)
        if group.ended < self.repeat:
            return
        means = [sum(column) / len(column) for column in zip(*group.scores)]
        mean = dict(zip(self._metrics(), means)) if means else None
        self.searcher.on_trial_complete(group.first, result=mean, error=mean is None)

    def get_state(self) -> Dict[str, Any]:
        kept = {key: value for key, value in self.__dict__.items() if key != "searcher"}
        return {"searcher": self.searcher.get_state(), "repeater": kept}

    def set_state(self, state: Dict[str, Any]) -> None:
        self.searcher.set_state(state["searcher"])
        self.__dict__.update(state["repeater"])
