"""As elastic_program.py, with TensorFlow: the failure comes out of a graph, as TensorFlow's own."""

import os
import signal
import sys

import tensorflow as tf
from elastic_joining import wait_for_another_rank

import kolo.tensorflow as hvd

STEPS = 20

hosts_file = sys.argv[1]
hvd.init()
weight = tf.Variable(float(hvd.rank()), dtype=tf.float64)  # rank 0's counts
state = hvd.elastic.TensorFlowState(variables=[weight], step=0, sizes=[])


@tf.function
def take_step():
    with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
        loss = weight * 1.0
    weight.assign_sub(tape.gradient(loss, [weight])[0])


@hvd.elastic.run
def train(state):
    print(f"rank {hvd.rank()} of {hvd.size()} at {state.step}", flush=True)
    state.sizes.append(hvd.size())
    while state.step < STEPS:
        if state.step == 12 and hvd.size() == 2:
            wait_for_another_rank(hvd, state, hosts_file)
        if state.step == 6 and hvd.size() == 3 and hvd.rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        take_step()
        state.step += 1
        state.commit()


train(state)
assert weight.numpy() == -float(STEPS), weight.numpy()
assert state.sizes == [3, 2, 3], state.sizes
print(f"rank {hvd.rank()} of {hvd.size()} is done", flush=True)
