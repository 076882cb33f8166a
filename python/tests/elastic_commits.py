"""An elastic job whose launcher is killed, and that goes on from the commit on disk
(elastic_test.py starts it twice)."""

import os
import sys

import torch

import kolo.torch as hvd

steps, pid_file = int(sys.argv[2]), sys.argv[3]
hvd.init()
model = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.zeros_(model.weight)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.5))
state = hvd.elastic.TorchState(model, optimizer, step=0)


@hvd.elastic.run
def train(state):
    print(f"rank {hvd.rank()} of {hvd.size()} from step {state.step} on", flush=True)
    while state.step < steps:
        state.optimizer.zero_grad()
        (-state.model.weight.sum()).backward()
        state.optimizer.step()
        state.step += 1
        state.commit()
        if state.step == 5 and hvd.rank() == 0 and not os.path.exists(pid_file):
            with open(pid_file + ".new", "w") as file:
                file.write("five steps")
            os.rename(pid_file + ".new", pid_file)


train(state)
momentum, weight = 0.0, 0.0
for _ in range(steps):
    momentum = 0.5 * momentum + 1
    weight += momentum
assert abs(state.model.weight.item() - weight) < 1e-3 * weight, (weight, model.weight)
print(f"{state.step} steps", flush=True)
