"""Trains in an elastic job that loses a rank and gets another one (elastic_test.py starts it).

Each sample x changes the weight by -x, so the weight says which samples were used. Who was where is
known at each step: rank 1 of the first three ranks ends itself in the middle of the fifth step, and
the two that are left wait for a third one when half of the samples are done.
"""

import os
import signal
import sys

import torch
from elastic_joining import wait_for_another_rank

import kolo.torch as hvd

SAMPLES = 96
BATCH = 2

hosts_file, how = sys.argv[1:3]
# A rank that is killed does not finish its step, one that is asked to go does: 24 samples are done.
LAST_STEP = 24 if how == "kill" else 18
hvd.init()
data = torch.arange(1, SAMPLES + 1, dtype=torch.float64)
model = torch.nn.Linear(1, 1, bias=False).double()
torch.nn.init.constant_(model.weight, float(hvd.rank()))  # rank 0's counts
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.0),
    named_parameters=model.named_parameters(),
    op=hvd.Sum,
)
sampler = hvd.elastic.ElasticSampler(data)
state = hvd.elastic.TorchState(
    model, optimizer, sampler=sampler, used=[0] * SAMPLES, sizes=[], epoch=0
)
resets = []
state.register_reset_callbacks([lambda: resets.append(hvd.size())])


def end_myself():
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGTERM)  # a notice: the step is finished first


@hvd.elastic.run
def train(state):
    print(f"rank {hvd.rank()} of {hvd.size()} at {state.sampler.processed_num}", flush=True)
    state.sizes.append(hvd.size())
    loader = torch.utils.data.DataLoader(range(SAMPLES), sampler=state.sampler, batch_size=BATCH)
    for number, batch in enumerate(loader):
        done = state.sampler.processed_num
        if done == SAMPLES // 2 and hvd.size() == 2:
            wait_for_another_rank(hvd, state, hosts_file)
        state.optimizer.zero_grad()
        (state.model.weight.sum() * data[batch].sum()).backward()
        if done == LAST_STEP and hvd.size() == 3 and hvd.rank() == 1:
            end_myself()
        state.optimizer.step()
        for index in hvd.allgather(batch, name="used").tolist():
            state.used[index] += 1
        state.sampler.record_batch(number, len(batch))
        state.commit()


train(state)
assert state.used == [1] * SAMPLES, state.used
assert model.weight.item() == -float(data.sum()), model.weight.item()
assert state.sizes == [3, 2, 3], state.sizes
assert resets in ([2, 3], []), resets
print(f"rank {hvd.rank()} of {hvd.size()} is done", flush=True)
