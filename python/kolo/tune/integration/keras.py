"""Callbacks for model.fit inside of trials, at Ray Tune's place for them."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Union

import keras

from kolo._errors import InvalidArgumentError, did_you_mean, suggests, unknown_name
from kolo.tune._session import checkpoint_dir, report

_EVENTS = [
    f"{what}_{when}"
    for what in ("batch", "epoch", "train", "test", "predict", "train_batch", "test_batch")
    for when in ("begin", "end")
]


class _TuneCallback(keras.callbacks.Callback):
    """Does its work at the events of Keras that ``on`` names."""

    def __init__(self, on: Union[str, Sequence[str]]) -> None:
        super().__init__()
        self._on = [on] if isinstance(on, str) else list(on)
        for event in self._on:
            if event not in _EVENTS:
                raise unknown_name(f"{type(self).__name__}: the event", event, _EVENTS)
            # Keras calls what is there by name.
            setattr(self, f"on_{event}", self._at(event))

    def _at(self, event: str) -> Any:
        def handle(*arguments: Any, **keywords: Any) -> None:
            given = [*arguments, *keywords.values()]
            logs = next((one for one in given if isinstance(one, Mapping)), {})
            self._handle(dict(logs), event)

        return handle

    def _handle(self, logs: Dict[str, Any], event: str) -> None:
        raise NotImplementedError


class TuneReportCallback(_TuneCallback):
    """Reports what Keras has measured. ``metrics``: one name of it, several, or a dictionary of the
    names in the study and in Keras; None: all."""

    @suggests
    def __init__(
        self,
        metrics: Union[None, str, Iterable[str], Mapping[str, str]] = None,
        on: Union[str, Sequence[str]] = "epoch_end",
    ) -> None:
        super().__init__(on)
        self._metrics = [metrics] if isinstance(metrics, str) else metrics

    def _handle(self, logs: Dict[str, Any], event: str) -> None:
        self._save(event)
        report(**self._chosen(logs))

    def _save(self, event: str) -> None:
        """Before the report that a checkpoint belongs to."""

    def _chosen(self, logs: Dict[str, Any]) -> Dict[str, Any]:
        if not self._metrics:
            return logs
        pairs: Mapping[str, str] = (
            self._metrics
            if isinstance(self._metrics, Mapping)
            else {name: name for name in self._metrics}
        )
        for name in pairs.values():
            if name not in logs:
                hint = did_you_mean(name, logs)
                raise InvalidArgumentError(
                    f"{type(self).__name__}: Keras has measured no {name!r}{hint}"
                    f"{'' if hint else ';'} it has {', '.join(sorted(logs)) or 'nothing'}"
                )
        return {ours: logs[theirs] for ours, theirs in pairs.items()}


class TuneReportCheckpointCallback(TuneReportCallback):
    """The same, with the model as a checkpoint: in the file ``filename``, at every ``frequency``-th
    event. The format follows from the name, by default that of Keras."""

    @suggests
    def __init__(
        self,
        metrics: Union[None, str, Iterable[str], Mapping[str, str]] = None,
        filename: str = "checkpoint",
        frequency: Union[int, List[int]] = 1,
        on: Union[str, Sequence[str]] = "epoch_end",
    ) -> None:
        super().__init__(metrics, on)
        events = self._on
        each = (
            list(frequency) if isinstance(frequency, (list, tuple)) else [frequency] * len(events)
        )
        if len(each) != len(events) or not all(isinstance(one, int) and one > 0 for one in each):
            raise InvalidArgumentError(
                f"TuneReportCheckpointCallback: frequency is {frequency!r}; give a number of 1 or "
                "more, or one for each of the events in `on`"
            )
        self._filename = filename if os.path.splitext(filename)[1] else f"{filename}.keras"
        self._every = dict(zip(events, each))
        self._seen: Dict[str, int] = {event: 0 for event in events}

    def _save(self, event: str) -> None:
        self._seen[event] += 1
        if self._seen[event] % self._every[event] == 0:
            with checkpoint_dir(step=self._seen[event]) as folder:
                self.model.save(os.path.join(folder, self._filename))


__all__ = ["TuneReportCallback", "TuneReportCheckpointCallback"]
