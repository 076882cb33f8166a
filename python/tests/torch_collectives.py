"""Collectives of kolo.torch in all their forms."""

import itertools
import os
import warnings

import torch
from ranks import RankTest, main

import kolo.torch as hvd

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
REDUCED = [torch.int32, torch.int64, torch.float16, torch.float32, torch.float64, torch.bfloat16]
MOVED = REDUCED + [torch.uint8, torch.int8, torch.int16, torch.bool]


def values(shape, dtype, rank=RANK):
    """The same on every rank that asks for the tensor of ``rank``."""
    generator = torch.Generator().manual_seed(1000 + rank)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    return torch.randint(0, 8, shape, generator=generator).to(dtype)


def everybody(shape, dtype):
    return torch.stack([values(shape, dtype, rank) for rank in range(SIZE)])


class Allreduce(RankTest):
    def test_types_and_dimensions(self):
        for dtype, dims in itertools.product(REDUCED, (0, 1, 3)):
            shape = [5] * dims
            result = hvd.allreduce(values(shape, dtype), op=hvd.Sum)
            expected = everybody(shape, dtype).double().sum(0).to(dtype)
            self.assertTrue(torch.equal(result, expected), (dtype, dims))

    def test_operations(self):
        mine = values([7], torch.float64)
        all_of_them = everybody([7], torch.float64)
        for op, expected in (
            (hvd.Average, all_of_them.mean(0)),
            (hvd.Sum, all_of_them.sum(0)),
            (hvd.Min, all_of_them.amin(0)),
            (hvd.Max, all_of_them.amax(0)),
            (hvd.Product, all_of_them.prod(0)),
        ):
            self.assertTrue(torch.allclose(hvd.allreduce(mine, op=op), expected))

    def test_average_is_the_default_and_deprecated_as_a_flag(self):
        mine = values([4], torch.float32)
        mean = everybody([4], torch.float32).mean(0)
        self.assertTrue(torch.allclose(hvd.allreduce(mine), mean))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            total = hvd.allreduce(mine, average=False)
        self.assertTrue(any(w.category is DeprecationWarning for w in caught))
        self.assertTrue(torch.allclose(total, mean * SIZE))
        with self.assertRaises(ValueError):
            hvd.allreduce(mine, average=True, op=hvd.Sum)

    def test_in_place_forms_change_the_tensor(self):
        expected = everybody([3, 2], torch.float32).sum(0)
        tensor = values([3, 2], torch.float32)
        self.assertIs(hvd.allreduce_(tensor, op=hvd.Sum), tensor)
        self.assertTrue(torch.equal(tensor, expected))
        tensor = values([3, 2], torch.float32)
        hvd.synchronize(hvd.allreduce_async_(tensor, op=hvd.Sum))
        self.assertTrue(torch.equal(tensor, expected))
        columns = values([3, 2], torch.float32).t()  # not contiguous
        hvd.allreduce_(columns, op=hvd.Sum)
        self.assertTrue(torch.equal(columns, expected.t()))

    def test_named_operations_in_different_orders(self):
        names = ["a", "b", "c"] if RANK % 2 == 0 else ["c", "a", "b"]
        handles = {n: hvd.allreduce_async(torch.tensor([1.0]), name=n, op=hvd.Sum) for n in names}
        for name in sorted(handles):
            self.assertEqual(hvd.synchronize(handles[name]).item(), SIZE)

    def test_factors(self):
        mine = values([4], torch.float32)
        result = hvd.allreduce(mine, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0)
        self.assertTrue(torch.allclose(result, everybody([4], torch.float32).sum(0) * 2))

    def test_compression(self):
        mine = values([4], torch.float32)
        for compression in (hvd.Compression.none, hvd.Compression.fp16, hvd.Compression.bf16):
            result = hvd.allreduce(mine, compression=compression, op=hvd.Sum)
            self.assertEqual(result.dtype, torch.float32)
            self.assertTrue(torch.equal(result, everybody([4], torch.float32).sum(0)))

    def test_poll_and_unknown_handles(self):
        handle = hvd.allreduce_async(torch.ones(2))
        answers = [hvd.poll(handle)]
        while not answers[-1]:
            answers.append(hvd.poll(handle))
        if SIZE == 1:
            self.assertEqual(answers, [False, True])
        self.assertTrue(torch.equal(hvd.synchronize(handle), torch.ones(2)))
        self.assertIsNone(hvd.synchronize(handle))

    def test_grouped_forms(self):
        shapes = [[3], [2, 2], []]
        mine = [values(shape, torch.float32) for shape in shapes]
        expected = [everybody(shape, torch.float32).sum(0) for shape in shapes]
        for result in (
            hvd.grouped_allreduce(mine, op=hvd.Sum),
            hvd.synchronize(hvd.grouped_allreduce_async(mine, name="group", op=hvd.Sum)),
            hvd.grouped_allreduce_([tensor.clone() for tensor in mine], op=hvd.Sum),
        ):
            for got, want in zip(result, expected):
                self.assertTrue(torch.equal(got, want))

    def test_gradient(self):
        tensor = values([4], torch.float32).requires_grad_()
        hvd.allreduce(tensor, op=hvd.Sum).sum().backward()
        self.assertTrue(torch.equal(tensor.grad, torch.full([4], float(SIZE))))
        tensors = [values([2], torch.float32).requires_grad_() for _ in range(2)]
        sum(t.sum() for t in hvd.grouped_allreduce(tensors, op=hvd.Average)).backward()
        for tensor in tensors:
            self.assertTrue(torch.equal(tensor.grad, torch.ones(2)))

    def test_sparse(self):
        indices = torch.tensor([[0, RANK + 1]])
        mine = torch.sparse_coo_tensor(indices, torch.ones(2, 3), (SIZE + 1, 3))
        result = hvd.sparse_allreduce_async(mine, name="sparse", op=hvd.Sum)().to_dense()
        expected = torch.ones(SIZE + 1, 3)
        expected[0] = SIZE
        self.assertTrue(torch.equal(result, expected))

    def test_adasum_of_equal_tensors_is_the_tensor(self):
        result = hvd.allreduce(torch.tensor([1.0, 2.0]), op=hvd.Adasum)
        self.assertTrue(torch.allclose(result, torch.tensor([1.0, 2.0])))

    def test_empty(self):
        self.assertEqual(list(hvd.allreduce(torch.empty(0, 3)).shape), [0, 3])


class Moving(RankTest):
    def test_allgather(self):
        for dtype in MOVED:
            parts = [values([rank + 1, 2], dtype, rank) for rank in range(SIZE)]
            self.assertTrue(torch.equal(hvd.allgather(parts[RANK]), torch.cat(parts)), dtype)
        nothing = hvd.allgather(torch.empty(0, 3))
        self.assertEqual(list(nothing.shape), [0, 3])

    def test_allgather_gradient(self):
        tensor = torch.ones(RANK + 1, 2, requires_grad=True)
        result = hvd.allgather(tensor)
        weights = torch.arange(len(result), dtype=torch.float32).unsqueeze(1)
        (result * weights).sum().backward()
        begin = sum(rank + 1 for rank in range(RANK))
        self.assertTrue(torch.equal(tensor.grad, weights[begin : begin + RANK + 1].expand(-1, 2)))

    def test_grouped_allgather(self):
        one, two = hvd.grouped_allgather([torch.full([1], float(RANK)), torch.ones(2, 2)])
        self.assertTrue(torch.equal(one, torch.arange(float(SIZE))))
        self.assertEqual(list(two.shape), [2 * SIZE, 2])

    def test_broadcast(self):
        for dtype, root in itertools.product(MOVED, range(SIZE)):
            expected = values([3], dtype, root)
            self.assertTrue(torch.equal(hvd.broadcast(values([3], dtype), root), expected))
            tensor = values([3], dtype)
            self.assertIs(hvd.broadcast_(tensor, root), tensor)
            self.assertTrue(torch.equal(tensor, expected))

    def test_broadcast_gradient(self):
        tensor = torch.ones(3, requires_grad=True)
        hvd.broadcast(tensor, SIZE - 1).sum().backward()
        expected = torch.ones(3) if RANK == SIZE - 1 else torch.zeros(3)
        self.assertTrue(torch.equal(tensor.grad, expected))

    def test_alltoall(self):
        rows = torch.tensor([[RANK * 10.0 + to] for to in range(SIZE)])
        expected = torch.tensor([[source * 10.0 + RANK] for source in range(SIZE)])
        self.assertTrue(torch.equal(hvd.alltoall(rows), expected))
        splits = torch.tensor([to + 1 for to in range(SIZE)], dtype=torch.int32)
        tensor = torch.full([int(splits.sum())], float(RANK), requires_grad=True)
        result, received = hvd.alltoall(tensor, splits=splits)
        self.assertEqual(received.tolist(), [RANK + 1] * SIZE)
        self.assertEqual(len(result), (RANK + 1) * SIZE)
        result.sum().backward()
        self.assertTrue(torch.equal(tensor.grad, torch.ones_like(tensor)))
        pair = hvd.synchronize(hvd.alltoall_async(rows))
        self.assertEqual(len(pair), 2)

    def test_reducescatter(self):
        rows = SIZE + 1
        mine = values([rows, 2], torch.float32)
        parts = torch.tensor_split(everybody([rows, 2], torch.float32).sum(0), SIZE)
        self.assertTrue(torch.equal(hvd.reducescatter(mine, op=hvd.Sum), parts[RANK]))
        tensor = mine.requires_grad_()
        hvd.reducescatter(tensor, op=hvd.Sum).sum().backward()
        self.assertTrue(torch.equal(tensor.grad, torch.full([rows, 2], float(SIZE))))
        one, two = hvd.grouped_reducescatter([mine.detach(), mine.detach()], op=hvd.Sum)
        self.assertTrue(torch.equal(one, two))
        self.assertTrue(torch.equal(one, parts[RANK]))

    def test_reducescatter_refuses_other_operations(self):
        for op in (hvd.Adasum, hvd.Min):
            with self.assertRaises(RuntimeError):
                hvd.reducescatter(torch.ones(SIZE), op=op)
            with self.assertRaises(RuntimeError):
                hvd.grouped_reducescatter([torch.ones(SIZE)], op=op)


class Meeting(RankTest):
    def test_variables_of_horovodrun(self):
        for name, value in (("RANK", RANK), ("SIZE", SIZE), ("LOCAL_RANK", hvd.local_rank())):
            self.assertEqual(int(os.environ[f"HOROVOD_{name}"]), value)

    def test_join_adds_zeros(self):
        if RANK == 0:
            last = hvd.join()
        else:
            result = hvd.allreduce(torch.ones(3), name="while joined", op=hvd.Sum)
            self.assertEqual(result.tolist(), [SIZE - 1] * 3)
            last = hvd.join()
        self.assertEqual(len(set(hvd.allgather_object(last))), 1)

    def test_barrier(self):
        hvd.barrier()

    def test_process_sets(self):
        if SIZE == 1:
            return
        half = hvd.add_process_set([rank for rank in range(SIZE) if rank % 2 == 0])
        self.assertEqual(half.included(), RANK % 2 == 0)
        if half.included():
            result = hvd.allreduce(torch.tensor([float(RANK)]), op=hvd.Sum, process_set=half)
            self.assertEqual(result.item(), sum(half.ranks))
            last = half.ranks[-1]
            result = hvd.broadcast(torch.tensor([RANK]), last, process_set=half)
            self.assertEqual(result.item(), last)
        else:
            with self.assertRaises(ValueError):
                hvd.allreduce(torch.ones(1), process_set=half)
        self.assertTrue(hvd.remove_process_set(half))
        self.assertFalse(hvd.remove_process_set(half))
        self.assertFalse(hvd.remove_process_set(hvd.global_process_set))


if __name__ == "__main__":
    main()
