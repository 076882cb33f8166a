"""What users may have called while a study runs. The names are Ray Tune's."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

from kolo.tune._space import Constants
from kolo.tune.trial import Trial


def caller_of(callback: Any, constants: Constants) -> Callable[[str, Dict[str, Any]], None]:
    """Calls the function of an object that an event is named after, as Tune's callbacks have it."""
    iteration = 0

    def call(event: str, row: Dict[str, Any]) -> None:
        nonlocal iteration
        function = getattr(callback, event, None)
        if function is None:
            return
        iteration += 1
        trial = Trial(row, constants.restore(row["config"]))
        arguments: Dict[str, Any] = {"iteration": iteration, "trials": [trial], "trial": trial}
        if event == "on_trial_result":
            arguments["result"] = trial.last_result
        function(**arguments)

    return call


class Callback:
    """Derive from it, and override what is of interest."""

    def on_trial_start(
        self, iteration: int, trials: List[Trial], trial: Trial, **info: Any
    ) -> None:
        """A trial begins."""

    def on_trial_result(
        self, iteration: int, trials: List[Trial], trial: Trial, result: Dict[str, Any], **info: Any
    ) -> None:
        """A trial has reported."""

    def on_trial_complete(
        self, iteration: int, trials: List[Trial], trial: Trial, **info: Any
    ) -> None:
        """A trial has ended."""

    def on_trial_error(
        self, iteration: int, trials: List[Trial], trial: Trial, **info: Any
    ) -> None:
        """A trial has failed."""
