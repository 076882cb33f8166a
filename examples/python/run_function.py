"""A function on several ranks, without a launcher.

Run:     python examples/python/run_function.py
Expect:  [1.5, 1.5]
"""

import kolo


def mean_of_ranks():
    import torch

    import kolo.torch as hvd

    hvd.init()
    return hvd.allreduce(torch.tensor([hvd.rank() + 1.0])).item()


if __name__ == "__main__":
    print(kolo.run(mean_of_ranks, np=2))
