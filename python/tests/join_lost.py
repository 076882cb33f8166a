"""A rank that has joined learns that another one left: an error, not the end of the process."""

import gc
import weakref

import torch

import kolo.torch as hvd


def optimizer():
    model = torch.nn.Linear(2, 2)
    return model, hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))


def step(model, wrapped):
    model(torch.ones(1, 2)).sum().backward()
    wrapped.step()


hvd.init()
# An optimizer ends with its last name, without the collector of cycles.
gc.disable()
model, wrapped = optimizer()
step(model, wrapped)
ended = weakref.ref(wrapped)
del model, wrapped
assert ended() is None, gc.get_referrers(ended())
# Two of them, so that join() has two places to stand in.
pairs = [optimizer() for _ in range(2)]
for pair in pairs:
    step(*pair)
if hvd.rank() == 0:
    try:
        hvd.join()
        raise SystemExit("join() returned although a rank has left")
    except hvd.HorovodInternalError:
        pass
hvd.shutdown()
