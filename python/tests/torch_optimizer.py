"""DistributedOptimizer: what it computes, and its rules."""

import copy
import warnings

import torch
from ranks import RankTest, main

import kolo.torch as hvd

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()


def network(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4), torch.nn.Linear(4, 2)
    )


def batch(step, rank):
    generator = torch.Generator().manual_seed(step * 100 + rank)
    return torch.randn(5, 6, generator=generator), torch.randn(5, 2, generator=generator)


def loss_of(model, step, rank=RANK):
    x, y = batch(step, rank)
    return torch.nn.functional.mse_loss(model(x), y)


def reference(make_optimizer, steps, scale=1.0):
    """One process that sees the batches of all ranks."""
    model = network()
    optimizer = make_optimizer(model)
    for step in range(steps):
        optimizer.zero_grad()
        (sum(loss_of(model, step, rank) for rank in range(SIZE)) / SIZE * scale).backward()
        optimizer.step()
    return model


def same(left, right, tolerance=1e-5):
    return all(
        torch.allclose(a, b, atol=tolerance) for a, b in zip(left.parameters(), right.parameters())
    )


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


class Training(RankTest):
    def check(self, make_optimizer=sgd, tolerance=1e-5, scale=1.0, **options):
        model = network(seed=RANK)
        hvd.broadcast_parameters(network().state_dict(), root_rank=0)
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        optimizer = hvd.DistributedOptimizer(
            make_optimizer(model), named_parameters=model.named_parameters(), **options
        )
        for step in range(4):
            optimizer.zero_grad()
            loss_of(model, step).backward()
            optimizer.step()
        self.assertTrue(same(model, reference(make_optimizer, 4, scale), tolerance))
        mine = torch.cat([p.detach().flatten() for p in model.parameters()])
        everybody = hvd.allgather(mine.unsqueeze(0))
        self.assertTrue((everybody == everybody[0]).all(), "ranks differ")

    def test_average(self):
        self.check()

    def test_adam(self):
        self.check(lambda model: torch.optim.Adam(model.parameters(), lr=0.01))

    def test_sum(self):
        self.check(op=hvd.Sum, scale=float(SIZE), tolerance=1e-4)

    def test_compression(self):
        self.check(compression=hvd.Compression.fp16, tolerance=1e-2)
        self.check(compression=hvd.Compression.bf16, tolerance=5e-2)

    def test_compressor_of_ones_own(self):
        class Negative(hvd.Compression.none):
            @staticmethod
            def compress(tensor):
                return -tensor, "context"

            @staticmethod
            def decompress(tensor, ctx):
                assert ctx == "context"
                return -tensor

        self.check(compression=Negative)

    def test_groups(self):
        self.check(groups=2)
        self.check(gradient_predivide_factor=2.0)

    def test_groups_of_tensors(self):
        model = network()
        parameters = list(model.parameters())
        optimizer = hvd.DistributedOptimizer(sgd(model), groups=[parameters[:2], parameters[3:5]])
        loss_of(model, 0).backward()
        optimizer.step()
        self.assertTrue(same(model, reference(sgd, 1)))

    def test_gradients_stay_right_when_they_are_set_to_none_or_to_zero(self):
        model = network()
        optimizer = hvd.DistributedOptimizer(sgd(model))
        for step in range(3):
            if step % 2:
                optimizer.zero_grad(set_to_none=False)
            else:
                for parameter in model.parameters():
                    parameter.grad = None
            loss_of(model, step).backward()
            optimizer.step()
        self.assertTrue(same(model, reference(sgd, 3)))

    def test_several_backward_passes(self):
        model = network()
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1), backward_passes_per_step=2
        )
        plain = network()
        for step in range(2):
            optimizer.zero_grad()
            for part in range(2):
                loss_of(model, 2 * step + part).backward()
            optimizer.step()
        reference_optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
        for step in range(2):
            reference_optimizer.zero_grad()
            total = sum(
                loss_of(plain, 2 * step + part, rank) for part in range(2) for rank in range(SIZE)
            )
            (total / SIZE).backward()
            reference_optimizer.step()
        self.assertTrue(same(model, plain))
        if SIZE > 1:
            optimizer.zero_grad()
            with self.assertRaises(AssertionError):
                for part in range(3):
                    loss_of(model, part).backward()
            optimizer.synchronize()

    def test_unused_parameters_count_as_zero(self):
        one, two = network(), network(1)
        both = list(one.parameters()) + list(two.parameters())
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(both, lr=1.0))
        before = copy.deepcopy(two)
        for step in range(2):
            optimizer.zero_grad()
            loss = loss_of(one, step)
            if RANK == 0:
                loss = loss + loss_of(two, step)
            loss.backward()
            optimizer.step()
        self.assertFalse(same(two, before))
        everybody = hvd.allgather(two[0].weight.detach().unsqueeze(0))
        self.assertTrue((everybody == everybody[0]).all())

    def test_sparse_gradients(self):
        for as_dense in (True, False):
            torch.manual_seed(0)
            table = torch.nn.Embedding(8, 3, sparse=True)
            start = table.weight.detach().clone()
            optimizer = hvd.DistributedOptimizer(
                torch.optim.SGD(table.parameters(), lr=1.0), sparse_as_dense=as_dense
            )
            for _ in range(2):
                optimizer.zero_grad()
                table(torch.tensor([0, RANK + 1])).sum().backward()
                optimizer.step()
            change = start - table.weight.detach()
            self.assertTrue(torch.allclose(change[0], torch.full([3], 2.0)), as_dense)
            self.assertTrue(torch.allclose(change[1], torch.full([3], 2.0 / SIZE)), as_dense)

    def test_clipping_between_synchronize_and_step(self):
        model = network()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0))
        loss_of(model, 0).backward()
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        before = copy.deepcopy(model)
        with optimizer.skip_synchronize():
            optimizer.step()
        change = sum(((a - b) ** 2).sum() for a, b in zip(model.parameters(), before.parameters()))
        self.assertLessEqual(change.item(), 0.0101**2)

    def test_step_after_synchronize_warns(self):
        model = network()
        optimizer = hvd.DistributedOptimizer(sgd(model))
        loss_of(model, 0).backward()
        optimizer.synchronize()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            optimizer.step()
        self.assertEqual(len([w for w in caught if "skip_synchronize" in str(w.message)]), 1)

    def test_closure(self):
        model = network()
        optimizer = hvd.DistributedOptimizer(sgd(model))

        def closure():
            optimizer.zero_grad()
            loss = loss_of(model, 0)
            loss.backward()
            return loss

        self.assertGreater(optimizer.step(closure).item(), 0)
        self.assertTrue(same(model, reference(sgd, 1)))

    def test_adasum(self):
        model = network()
        optimizer = hvd.DistributedOptimizer(sgd(model), op=hvd.Adasum)
        loss_of(model, 0).backward()
        optimizer.step()
        everybody = hvd.allgather(model[0].weight.detach().unsqueeze(0))
        self.assertTrue((everybody == everybody[0]).all())

    def test_process_set(self):
        if SIZE == 1:
            return
        first = hvd.add_process_set([0])
        model = network()
        optimizer = hvd.DistributedOptimizer(sgd(model), process_set=first)
        loss_of(model, 0).backward()
        optimizer.step()
        alone = network()
        plain = sgd(alone)
        loss_of(alone, 0).backward()
        plain.step()
        self.assertTrue(same(model, alone))
        hvd.remove_process_set(first)

    def test_join_in_the_middle(self):
        model = network()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        for step in range(2 + RANK):
            optimizer.zero_grad()
            loss_of(model, step).backward()
            optimizer.step()
        self.assertEqual(hvd.join(), hvd.broadcast_object(SIZE - 1, 0))

    def test_learning_rate_schedulers_work_on_it(self):
        model = network()
        optimizer = hvd.DistributedOptimizer(sgd(model))
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        loss_of(model, 0).backward()
        optimizer.step()
        schedule.step()
        self.assertAlmostEqual(optimizer.param_groups[0]["lr"], 0.05)
        self.assertEqual(type(optimizer).__name__, "SGD")
        self.assertIsInstance(optimizer, torch.optim.SGD)


class Rules(RankTest):
    def test_names(self):
        model = network()
        with self.assertRaises(ValueError):
            hvd.DistributedOptimizer(sgd(model), named_parameters=list(model.parameters()))
        with self.assertRaises(ValueError):
            hvd.DistributedOptimizer(
                sgd(model), named_parameters=[("w", p) for p in model.parameters()]
            )
        with self.assertRaises(ValueError):
            hvd.DistributedOptimizer(
                sgd(model), named_parameters=list(model.named_parameters())[:2]
            )

    def test_options(self):
        for options in (
            {"backward_passes_per_step": 0},
            {"op": hvd.Min},
            {"op": hvd.Sum, "gradient_predivide_factor": 2.0},
            {"groups": -1},
            {"groups": "two"},
        ):
            with self.assertRaises(ValueError, msg=str(options)):
                hvd.DistributedOptimizer(sgd(network()), **options)
        with self.assertRaises(ValueError):
            hvd.DistributedOptimizer(None)

    def test_zero_grad_between_backward_and_step(self):
        if SIZE == 1:
            return
        model = network()
        optimizer = hvd.DistributedOptimizer(sgd(model))
        loss_of(model, 0).backward()
        with self.assertRaises(AssertionError):
            optimizer.zero_grad()
        optimizer.step()
        optimizer.zero_grad()

    def test_zero_grad_gives_zeros_to_what_is_frozen(self):
        model = network()
        optimizer = hvd.DistributedOptimizer(sgd(model))
        for parameter in model[0].parameters():
            parameter.requires_grad_(False)
        optimizer.zero_grad(set_to_none=False)
        loss_of(model, 0).backward()
        for parameter in model[0].parameters():
            self.assertFalse(parameter.grad.any())
        before = model[0].weight.clone()
        optimizer.step()
        self.assertTrue(torch.equal(model[0].weight, before))
        optimizer.zero_grad(set_to_none=True)
        self.assertIsNone(model[0].weight.grad)

    def test_ranks_with_other_parameters_are_told(self):
        if SIZE == 1:
            return
        model = torch.nn.Linear(2, 2 + RANK)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        model(torch.ones(1, 2)).sum().backward()
        with self.assertRaises(hvd.HorovodInternalError) as caught:
            optimizer.step()
        self.assertIn("do not train the same parameters", str(caught.exception))


class State(RankTest):
    def test_broadcast_of_parameters(self):
        model = network(seed=RANK)
        hvd.broadcast_parameters(model.state_dict(), root_rank=SIZE - 1)
        self.assertTrue(same(model, network(seed=SIZE - 1)))
        with self.assertRaises(ValueError):
            hvd.broadcast_parameters(3, root_rank=0)

    def test_broadcast_of_optimizer_state(self):
        for make in (
            lambda m: torch.optim.SGD(m.parameters(), lr=0.1 * (RANK + 1)),
            lambda m: torch.optim.SGD(m.parameters(), lr=0.1 * (RANK + 1), momentum=0.9),
            lambda m: torch.optim.Adam(m.parameters(), lr=0.1 * (RANK + 1), amsgrad=True),
            lambda m: torch.optim.Adagrad(m.parameters(), lr=0.1 * (RANK + 1)),
        ):
            model = network()
            optimizer = make(model)
            if RANK == 0:  # the others have no state yet
                loss_of(model, 0).backward()
                optimizer.step()
            wrapped = hvd.DistributedOptimizer(optimizer)
            hvd.broadcast_optimizer_state(wrapped, root_rank=0)
            self.assertAlmostEqual(wrapped.param_groups[0]["lr"], 0.1)
            states = hvd.allgather_object(
                [
                    {k: v.tolist() if torch.is_tensor(v) else v for k, v in s.items()}
                    for s in wrapped.state_dict()["state"].values()
                ]
            )
            self.assertTrue(all(state == states[0] for state in states))
        with self.assertRaises(ValueError):
            hvd.broadcast_optimizer_state(torch.optim.LBFGS(network().parameters()), 0)

    def test_a_state_that_is_made_leaves_zeros_as_gradients(self):
        model = network()
        model[0].bias.requires_grad_(False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        wrapped = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
        hvd.broadcast_optimizer_state(wrapped, root_rank=0)
        self.assertFalse(hvd.broadcast(model[0].weight.grad, root_rank=0).any())
        self.assertIsNone(model[0].bias.grad)

    def test_objects(self):
        self.assertEqual(
            hvd.broadcast_object({"rank": RANK}, root_rank=SIZE - 1), {"rank": SIZE - 1}
        )
        self.assertEqual(hvd.allgather_object("x" * RANK), ["x" * rank for rank in range(SIZE)])

    def test_sync_batch_norm(self):
        torch.manual_seed(3)
        inputs = torch.randn(4 * SIZE, 3, 2, 2)
        mine = inputs[4 * RANK : 4 * RANK + 4].clone().requires_grad_()
        everything = inputs.clone().requires_grad_()
        norm, plain = hvd.SyncBatchNorm(3), torch.nn.BatchNorm2d(3)
        weights = torch.arange(inputs.numel(), dtype=torch.float32).view_as(inputs)
        output = norm(mine)
        expected = plain(everything)
        part = slice(4 * RANK, 4 * RANK + 4)
        self.assertTrue(torch.allclose(output, expected[part], atol=1e-5))
        (output * weights[part]).sum().backward()
        (expected * weights).sum().backward()
        self.assertTrue(torch.allclose(mine.grad, everything.grad[part], atol=1e-3))
        self.assertTrue(torch.allclose(norm.running_var, plain.running_var, atol=1e-5))
        total = hvd.allreduce(norm.weight.grad, op=hvd.Sum)
        self.assertTrue(torch.allclose(total, plain.weight.grad, rtol=1e-3))
        norm.eval()
        self.assertEqual(norm(mine).shape, mine.shape)

    def test_elastic_state(self):
        model = network(seed=RANK)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        sampler = hvd.elastic.ElasticSampler(list(range(10)), shuffle=False)
        state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0, batch=RANK)
        runs = []

        @hvd.elastic.run
        def train(state):
            runs.append((state.epoch, state.batch))
            if len(runs) == 1:
                state.epoch = 1
                state.commit()
                state.epoch = 2
                raise hvd.HorovodInternalError("for the test")
            return state.epoch

        self.assertEqual(train(state), 1)
        self.assertEqual(runs, [(0, 0), (1, 0)])
        self.assertTrue(same(model, network(seed=0)))
        sampler.record_batch(0, 2)
        self.assertEqual(sampler.processed_num, 2 * SIZE)
        state.sync()
        self.assertEqual(sampler.state_dict(), {"epoch": 0, "processed_num": 2 * SIZE})
        self.assertEqual(sampler.processed_indices, set(range(min(10, 2 * SIZE))))
        self.assertEqual(len(sampler), -(-max(0, 10 - 2 * SIZE) // SIZE))
        self.assertIsNone(hvd.elastic.TorchState(epoch=3).model)


if __name__ == "__main__":
    main()
