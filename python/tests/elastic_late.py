"""An elastic job in which a rank is lost, and another one comes too late to the next group: the
first meeting of that group fails (elastic_test.py starts it)."""

import os
import signal
import time

import torch

import kolo.torch as hvd
from kolo import _core

hvd.init()
LATE, LOST = hvd.rank() == 1, hvd.rank() == 2
await_next = _core.ElasticWorker.await_next


def await_next_later(worker):
    """It has said that it is ready, so the group is formed with it."""
    global LATE
    if LATE:
        LATE = False
        time.sleep(6)
    return await_next(worker)


_core.ElasticWorker.await_next = await_next_later
state = hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank, step=0, total=0.0)


@hvd.elastic.run
def train(state):
    print(f"rank {hvd.rank()} of {hvd.size()} at {state.step}", flush=True)
    while state.step < 10:
        if state.step == 5 and LOST:
            os.kill(os.getpid(), signal.SIGKILL)
        state.total += hvd.allreduce(torch.ones(1)).item()
        state.step += 1
        state.commit()


train(state)
assert state.total == 10.0, state.total
print("all steps", flush=True)
