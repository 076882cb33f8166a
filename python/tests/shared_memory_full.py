"""Gradients that do not fit into shared memory: an error at each step, and nothing worse."""

import os

os.environ["KOLO_SHARED_MEMORY_BYTES"] = str(64 << 20)

import torch  # noqa: E402
from ranks import RankTest, main  # noqa: E402

import kolo.torch as hvd  # noqa: E402

hvd.init()


class Full(RankTest):
    def test_steps(self):
        model = torch.nn.Sequential(*(torch.nn.Linear(1000, 1000) for _ in range(20)))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        for _ in range(3):
            with self.assertRaisesRegex(hvd.HorovodInternalError, "shared memory"):
                model(torch.ones(1, 1000)).sum().backward()
                optimizer.step()
            optimizer.zero_grad()
        self.assertEqual(hvd.allreduce(torch.ones(1), op=hvd.Sum).item(), hvd.size())


if __name__ == "__main__":
    main()
