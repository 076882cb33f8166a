"""What users may have called while a study runs. The names are Ray Tune's."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from kolo.tune.trial import Trial


class Callback:
    """Derive from it, and override what is of interest."""

    def setup(
        self,
        stop: Any = None,
        num_samples: Optional[int] = None,
        total_num_samples: Optional[int] = None,
        **info: Any,
    ) -> None:
        """The study begins."""

    def on_step_begin(self, iteration: int, trials: List[Trial], **info: Any) -> None:
        """Something has happened, of which the others are told now."""

    def on_step_end(self, iteration: int, trials: List[Trial], **info: Any) -> None:
        """All have been told."""

    def on_trial_start(
        self, iteration: int, trials: List[Trial], trial: Trial, **info: Any
    ) -> None:
        """A trial begins."""

    def on_trial_restore(
        self, iteration: int, trials: List[Trial], trial: Trial, **info: Any
    ) -> None:
        """A trial begins from a checkpoint."""

    def on_trial_save(self, iteration: int, trials: List[Trial], trial: Trial, **info: Any) -> None:
        """A trial has saved a checkpoint."""

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

    def on_checkpoint(
        self, iteration: int, trials: List[Trial], trial: Trial, checkpoint: Any, **info: Any
    ) -> None:
        """The same as on_trial_save, with the checkpoint."""

    def on_experiment_end(self, trials: List[Trial], **info: Any) -> None:
        """The study has ended."""

    def get_state(self) -> Optional[Dict[str, Any]]:
        """What set_state() shall be given when the study goes on. Nothing asks for it here."""
        return None

    def set_state(self, state: Dict[str, Any]) -> None:
        """Takes what get_state() has returned."""


class Listeners:
    """Calls all callbacks of a study, and knows its trials."""

    def __init__(self, callbacks: List[Any], make_trial: Callable[[Dict[str, Any]], Trial]) -> None:
        self._callbacks = callbacks
        self._make_trial = make_trial
        self._trials: Dict[int, Trial] = {}
        self._iteration = 0
        # What a callback has raised. It passes through the controller, which has errors of its own.
        self.error: Optional[BaseException] = None

    def __bool__(self) -> bool:
        return bool(self._callbacks)

    def begin(self, stop: Any, num_samples: int) -> None:
        """The study begins."""
        self._tell("setup", stop=stop, num_samples=num_samples, total_num_samples=num_samples)

    def __call__(self, event: str, row: Dict[str, Any]) -> None:
        """What the compiled module calls: the name of an event, and the trial of it."""
        trial = self._make_trial(row)
        before = self._trials.get(trial.number)
        if before is not None:  # the same object, whose users may have put something into it
            before.__dict__.update(trial.__dict__)
            trial = before
        self._trials[trial.number] = trial
        self._iteration += 1
        place: Dict[str, Any] = {
            "iteration": self._iteration,
            "trials": [self._trials[number] for number in sorted(self._trials)],
        }
        self._tell("on_step_begin", **place)
        if event == "on_trial_start" and row.get("checkpoint"):
            self._tell("on_trial_restore", **place, trial=trial)
        if event == "on_trial_result":
            self._tell(event, **place, trial=trial, result=trial.last_result)
        else:
            self._tell(event, **place, trial=trial)
        if event == "on_trial_save":
            self._tell("on_checkpoint", **place, trial=trial, checkpoint=trial.checkpoint)
        self._tell("on_step_end", **place)

    def end(self, trials: List[Trial]) -> None:
        """The study has ended."""
        self._tell("on_experiment_end", trials=trials)

    def _tell(self, event: str, **arguments: Any) -> None:
        for callback in self._callbacks:
            function = getattr(callback, event, None)
            if function is None:
                continue
            try:
                function(**arguments)
            except BaseException as error:
                self.error = self.error or error
                raise
