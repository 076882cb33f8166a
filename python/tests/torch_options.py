"""What DistributedOptimizer offers beyond Horovod: lossy compression, sharded state; Lars and Lamb."""

import itertools

import torch
from ranks import RankTest, main

import kolo.torch as hvd

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(24, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))


def batch(rank, step):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(8, 24, generator=generator)


def loss_of(model, rank, step):
    return (model(batch(rank, step)) - 1).pow(2).mean()


def trained_alone(make, steps):
    """The mean loss of all ranks, minimised in one place."""
    model = network()
    optimizer = make(model.parameters())
    for step in range(steps):
        optimizer.zero_grad()
        (sum(loss_of(model, rank, step) for rank in range(SIZE)) / SIZE).backward()
        optimizer.step()
    return model


def trained_together(make, steps, **options):
    model = network()
    optimizer = hvd.DistributedOptimizer(
        make(model.parameters()), named_parameters=model.named_parameters(), **options
    )
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model, RANK, step).backward()
        optimizer.step()
    return model, optimizer


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def far(one, other):
    pairs = zip(one.parameters(), other.parameters())
    return max((a - b).abs().max().item() for a, b in pairs)


class Lossy(RankTest):
    def test_nothing_is_lost_with_all_columns_and_all_entries(self):
        expected = trained_alone(sgd, 4)
        for compression in (hvd.Compression.power_sgd(16), hvd.Compression.top_k(1.0)):
            model, _ = trained_together(sgd, 4, compression=compression)
            self.assertLess(far(model, expected), 1e-5)

    def test_ranks_agree_and_learn(self):
        for compression in (hvd.Compression.power_sgd(2), hvd.Compression.top_k(0.1)):
            model, _ = trained_together(sgd, 30, compression=compression)
            weights = torch.cat([p.detach().flatten() for p in model.parameters()])
            everybody = hvd.allgather(weights.unsqueeze(0))
            self.assertTrue(torch.equal(everybody[0], everybody[-1]))
            self.assertLess(loss_of(model, 0, 99), 0.5 * loss_of(network(), 0, 99))

    def test_what_is_left_out_comes_later(self):
        if SIZE == 1:
            return
        weights = torch.nn.Parameter(torch.zeros(10))
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD([weights], lr=1.0), compression=hvd.Compression.top_k(0.1)
        )
        slope = torch.arange(10.0)
        for _ in range(60):
            optimizer.zero_grad()
            (weights * slope).sum().backward()
            optimizer.step()
        # After n steps the plain optimizer is at -n * slope; the error is bounded, not growing.
        self.assertLess((weights + 60 * slope).abs().max(), 60)

    def test_bad_options(self):
        for make in (lambda: hvd.Compression.power_sgd(0), lambda: hvd.Compression.top_k(1.5)):
            with self.assertRaises(ValueError):
                make()
        lossy = hvd.Compression.power_sgd()
        with self.assertRaises(ValueError):
            trained_together(sgd, 1, compression=lossy, op=hvd.Adasum)
        with self.assertRaises(ValueError):
            trained_together(sgd, 1, compression=lossy, shard_optimizer_state=True)
        with self.assertRaises(NotImplementedError):
            hvd.allreduce(torch.ones(1), compression=lossy)


class Sharded(RankTest):
    def test_the_same_weights_with_a_share_of_the_state(self):
        for make in (sgd, lambda p: torch.optim.Adam(p, lr=0.01)):
            expected = trained_alone(make, 5)
            model, optimizer = trained_together(make, 5, shard_optimizer_state=True)
            self.assertLess(far(model, expected), 1e-5)
            kept = (
                [len(optimizer.state)] if SIZE == 1 else hvd.allgather_object(len(optimizer.state))
            )
            self.assertEqual(sum(kept), 4)
        if SIZE > 1:
            self.assertTrue(all(p.grad is not None for p in model.parameters()))
            with self.assertRaises(ValueError):
                hvd.broadcast_optimizer_state(optimizer, root_rank=0)


class LargeBatches(RankTest):
    def test_lars(self):
        weights = torch.nn.Parameter(torch.tensor([[3.0, 4.0]]))
        bias = torch.nn.Parameter(torch.tensor([1.0]))
        optimizer = hvd.Lars([weights, bias], lr=1.0, momentum=0.5, weight_decay=0.1, trust=0.01)
        velocity = torch.zeros(1, 2)
        for _ in range(3):
            optimizer.zero_grad()
            ((weights * torch.tensor([[6.0, 8.0]])).sum() + bias.sum()).backward()
            w = weights.detach().clone()
            # local = trust |w| / (|g| + decay |w|)
            local = 0.01 * w.norm() / (10.0 + 0.1 * w.norm())
            velocity = 0.5 * velocity + local * (weights.grad + 0.1 * w)
            optimizer.step()
            self.assertTrue(torch.allclose(weights, w - velocity, atol=1e-6))
        self.assertAlmostEqual(bias.item(), 1.0 - (1 + 1.5 + 1.75), places=5)
        with self.assertRaises(ValueError):
            hvd.Lars([weights], trust=0)

    def test_lamb(self):
        weights = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
        optimizer = hvd.Lamb([weights], lr=0.1, weight_decay=0.0)
        (weights * torch.tensor([1.0, -1.0])).sum().backward()
        optimizer.step()
        # The first update of Adam is the sign of the gradient, whose norm here is sqrt(2).
        expected = torch.tensor([3.0, 4.0]) - 0.1 * 5 / 2**0.5 * torch.tensor([1.0, -1.0])
        self.assertTrue(torch.allclose(weights, expected, atol=1e-4))
        with self.assertRaises(ValueError):
            hvd.Lamb([weights], betas=(1.0, 0.9))

    def test_with_several_ranks(self):
        for make, shards in itertools.product((hvd.Lars, hvd.Lamb), (False, True)):
            expected = trained_alone(make, 3)
            model, _ = trained_together(make, 3, shard_optimizer_state=shards)
            self.assertLess(far(model, expected), 1e-5)


if __name__ == "__main__":
    main()
