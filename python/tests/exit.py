"""Ends while operations are under way: without a hang, and with the program's own exit status."""

import sys
import threading

import torch

import kolo.torch as hvd

hvd.init()
if hvd.rank() == 0:
    # Nobody else submits these.
    handle = hvd.allreduce_async(torch.ones(1000), name="nobody comes")
    hvd.allgather_async(torch.ones(10), name="nobody comes either")
    threading.Thread(target=lambda: hvd.synchronize(handle), daemon=True).start()
    print("rank 0 ends")
hvd.barrier()  # nobody leaves before the operations are under way
sys.exit(0)
