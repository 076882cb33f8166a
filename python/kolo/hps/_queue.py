"""Evaluators whose evaluations each take items from a queue: processors, say."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Condition
from typing import Any, Deque, Dict, Iterator, List, Optional, Sequence, Type

from kolo._errors import InvalidArgumentError
from kolo.hps._evaluator import Evaluator


def queued(evaluator_class: Type[Evaluator]) -> Type[Evaluator]:
    """An evaluator of that class with a ``queue``. Each evaluation takes ``queue_pop_per_task`` items
    from its front while it runs, has them as the argument ``dequed``, and puts them back at its
    end."""

    class Queued(evaluator_class):  # type: ignore[misc,valid-type]
        def __init__(
            self,
            *arguments: Any,
            queue: Optional[Sequence[Any]] = None,
            queue_pop_per_task: int = 1,
            **keywords: Any,
        ) -> None:
            super().__init__(*arguments, **keywords)
            self.queue: Deque[Any] = deque(queue or [])
            self.queue_pop_per_task = queue_pop_per_task
            if queue_pop_per_task > len(self.queue):
                raise InvalidArgumentError(
                    f"queued: the queue has {len(self.queue)} items, and each evaluation takes "
                    f"{queue_pop_per_task}"
                )
            self._returned = Condition()
            self._waiters = ThreadPoolExecutor(self.num_workers)

        @contextmanager
        def items(self) -> Iterator[Dict[str, Any]]:
            with self._returned:
                self._returned.wait_for(lambda: len(self.queue) >= self.queue_pop_per_task)
                taken: List[Any] = [self.queue.popleft() for _ in range(self.queue_pop_per_task)]
            try:
                yield {"dequed": taken}
            finally:
                with self._returned:
                    self.queue.extend(taken)
                    self._returned.notify_all()

        def _start(self, config: Dict[str, Any], **more: Any) -> Any:
            start = super()._start

            def evaluate() -> Any:
                with self.items() as taken:
                    return start(config, **taken).result()

            return self._waiters.submit(evaluate)

    Queued.__name__ = Queued.__qualname__ = f"Queued{evaluator_class.__name__}"
    return Queued
