"""Searches and schedulers of the user's own: what the controller calls, in Tune's words.

The controller numbers trials; a search or scheduler knows them by the number as a text.
"""

from __future__ import annotations

import copy
from typing import Any, Callable, Dict, List, Optional

from kolo._errors import InvalidArgumentError
from kolo.tune._space import NUMBER, SUGGESTION, Constants, has_domains, plain
from kolo.tune.sample import randint, sample_from
from kolo.tune.schedulers import TrialScheduler
from kolo.tune.suggest import Searcher
from kolo.tune.trial import Trial, new_row, trial_of


def trial_id_of(number: int) -> str:
    """By which searches, schedulers and stoppers know a trial."""
    return f"{number:05d}"


def _merge(config: Dict[str, Any], suggestion: Dict[str, Any]) -> Dict[str, Any]:
    merged = dict(config)
    for key, value in suggestion.items():
        below = merged.get(key)
        both = isinstance(below, dict) and isinstance(value, dict)
        merged[key] = _merge(below, value) if both else value  # type: ignore[arg-type]
    return merged


class CustomSearch:
    """A Searcher with a suggest() of its own."""

    label = "search_alg"

    def __init__(self, searcher: Searcher, config: Dict[str, Any], metric: Any, mode: Any) -> None:
        self._searcher = searcher
        self._config = config
        self._suggestions: Dict[int, Any] = {}
        self._results: Dict[int, Dict[str, Any]] = {}
        self._is_finished = False
        took_it = searcher.set_search_properties(metric, mode, copy.deepcopy(config))
        if has_domains(config) and not took_it:
            raise InvalidArgumentError(
                f"tune.run: {type(searcher).__name__} does not take the search space of `config` "
                "(its set_search_properties returned False); leave constants alone in there"
            )

    def space(self, constants: Constants) -> Dict[str, Any]:
        """What the controller draws from: the number of the trial, and what was suggested for it."""
        return {
            NUMBER: randint(0, 2**31 - 1),
            SUGGESTION: sample_from(
                lambda spec: plain(self._suggestions[spec.config[NUMBER]], constants)
            ),
        }

    # --- for the controller ---

    def suggest(self, number: int) -> bool:
        """Whether there is a suggestion for the trial."""
        suggestion = self._searcher.suggest(trial_id_of(number))
        if suggestion == Searcher.FINISHED:
            self._is_finished = True
        if not isinstance(suggestion, dict):
            return False
        self._suggestions[number] = _merge(self._config, suggestion)
        return True

    def is_finished(self) -> bool:
        """Whether there will be none any more."""
        return self._is_finished

    def see(self, number: int, result: Dict[str, Any]) -> None:
        """A trial has reported."""
        self._results[number] = result
        self._searcher.on_trial_result(trial_id_of(number), result)

    def end(self, number: int, failed: bool) -> None:
        """A trial has ended."""
        result = self._results.pop(number, None)
        self._searcher.on_trial_complete(
            trial_id_of(number), result=None if failed else result, error=failed
        )


def watched(
    watchers: List[Any], stopper: Optional[Callable[..., bool]]
) -> Optional[Callable[[int, Any], bool]]:
    """The stopping rule of a study, which the controller asks before all else: so it is how a search
    and a scheduler see whole results."""
    if not watchers:
        return stopper

    def see(number: int, result: Dict[str, Any]) -> bool:
        for watcher in watchers:
            watcher.see(number, result)
        return stopper is not None and stopper(number, result)

    return see


class Runner:
    """What a scheduler may ask about the study."""

    def __init__(self) -> None:
        self._trials: List[Trial] = []

    def get_trials(self) -> List[Trial]:
        """All trials so far."""
        return list(self._trials)

    def get_live_trials(self) -> List[Trial]:
        """Those that have not ended."""
        return [t for t in self._trials if t.status not in (Trial.TERMINATED, Trial.ERROR)]


class CustomScheduler:
    """A TrialScheduler with an on_trial_result() of its own."""

    label = "scheduler"

    def __init__(
        self, scheduler: TrialScheduler, constants: Constants, metric: Any, mode: Any
    ) -> None:
        self._scheduler = scheduler
        self._constants = constants
        self._runner = Runner()
        self._trials: Dict[int, Trial] = {}
        scheduler.set_search_properties(metric, mode)

    # --- for the controller ---

    def see(self, number: int, result: Dict[str, Any]) -> None:
        """A trial has reported; decide() follows."""
        trial = self._trials[number]
        trial.last_result = result
        trial.results.append(result)
        trial.status = Trial.RUNNING

    def add(self, number: int, config: Any) -> None:
        """A new trial."""
        row = {**new_row(number, config), "name": f"trial_{trial_id_of(number)}"}
        trial = trial_of(row, self._constants.restore(config))
        self._trials[number] = trial
        self._runner._trials.append(trial)
        self._scheduler.on_trial_add(self._runner, trial)

    def decide(self, number: int) -> str:
        """What becomes of a trial after its last result."""
        trial = self._trials[number]
        answer = self._scheduler.on_trial_result(self._runner, trial, trial.last_result)
        known = (TrialScheduler.CONTINUE, TrialScheduler.PAUSE, TrialScheduler.STOP)
        if answer not in (*known, TrialScheduler.NOOP):
            raise InvalidArgumentError(
                f"on_trial_result returned {answer!r}; it must be one of {', '.join(known)}"
            )
        if answer == TrialScheduler.PAUSE:
            trial.status = Trial.PAUSED
        return answer

    def end(self, number: int, failed: bool) -> None:
        """A trial has ended."""
        trial = self._trials[number]
        trial.status = Trial.ERROR if failed else Trial.TERMINATED
        if failed:
            self._scheduler.on_trial_error(self._runner, trial)
        else:
            self._scheduler.on_trial_complete(self._runner, trial, trial.last_result)

    def choose(self, waiting: List[int]) -> Optional[int]:
        """The place of the one that shall run."""
        if type(self._scheduler).choose_trial_to_run is TrialScheduler.choose_trial_to_run:
            return 0
        chosen = self._scheduler.choose_trial_to_run(self._runner)
        return (
            None if chosen is None or chosen.number not in waiting else waiting.index(chosen.number)
        )
