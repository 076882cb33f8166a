"""Wrong calls from Python: a clear error on the caller, and everything still works afterwards."""

import atexit
import ctypes
import gc
import os
import signal
import threading

import numpy as np
import torch
from ranks import RankTest, main

import kolo
import kolo.torch as hvd
from kolo import _numpy_ops

with_error = None
try:
    hvd.rank()
except ValueError as error:
    with_error = error
hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()


class Calls(RankTest):
    def tearDown(self):
        self.assertEqual(hvd.allreduce(torch.ones(1), op=hvd.Sum).item(), SIZE)

    def test_before_init(self):
        self.assertIn("init", str(with_error))
        self.assertEqual(with_error.code, "failed_precondition")

    def test_wrong_types(self):
        for wrong in (None, 3, "x", [1.0], torch.ones(2).to_sparse(), torch.ones(1, device="meta")):
            for call in (
                hvd.allreduce,
                hvd.allreduce_,
                hvd.allreduce_async,
                hvd.allgather,
                hvd.alltoall,
                hvd.reducescatter,
                lambda tensor: hvd.broadcast(tensor, 0),
                lambda tensor: hvd.broadcast_(tensor, 0),
            ):
                with self.assertRaises(ValueError):
                    call(wrong)
        with self.assertRaises(ValueError):
            hvd.allreduce(torch.ones(2, dtype=torch.complex64))
        for op in (7, -1, "sum", True):
            with self.assertRaises(ValueError):
                hvd.allreduce(torch.ones(1), op=op)
        for wrong in (torch.ones(1), [], 3, [torch.ones(1), None]):
            with self.assertRaises(ValueError):
                hvd.grouped_allreduce(wrong)
        with self.assertRaises(ValueError):
            hvd.allreduce(torch.ones(1), process_set=3)

    def test_what_is_something_else(self):
        model = torch.nn.Linear(1, 1)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        for text, wrong in (
            ("is not an optimizer", lambda: hvd.broadcast_optimizer_state(model, root_rank=0)),
            ("use Compression.fp16", lambda: hvd.DistributedOptimizer(sgd, compression="fp16")),
            ("is not a function", lambda: hvd.elastic.run(3)),
        ):
            with self.assertRaisesRegex(ValueError, text):
                wrong()

    def test_a_misspelt_argument(self):
        model = torch.nn.Linear(1, 1)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.assertRaisesRegex(TypeError, "did you mean 'named_parameters'"):
            hvd.DistributedOptimizer(sgd, named_parameter=model.named_parameters())

    def test_wrong_shapes_and_ranks(self):
        scalar = torch.tensor(1.0)
        for call in (hvd.allgather, hvd.alltoall, hvd.reducescatter):
            with self.assertRaises(ValueError):
                call(scalar)
        for root in (-1, SIZE, "0", None, 0.5):
            with self.assertRaises(ValueError):
                hvd.broadcast(torch.ones(1), root)
        for splits in ([1], [5] * SIZE, [-1] * SIZE, torch.ones(SIZE), "x", 3):
            if SIZE == 1 and splits == [1]:
                continue
            with self.assertRaises((ValueError, TypeError)):
                hvd.alltoall(torch.ones(SIZE), splits=splits)
        with self.assertRaises(NotImplementedError):
            hvd.reducescatter(torch.ones(SIZE), op=hvd.Max)
        for ranks in ([], [-1], [SIZE], "abc", 3):
            with self.assertRaises((ValueError, NotImplementedError)):
                hvd.add_process_set(ranks)
        with self.assertRaises(ValueError):
            hvd.add_process_set(list(range(SIZE)))

    def test_ranks_that_disagree(self):
        if SIZE == 1:
            return
        for tensor in (
            torch.ones(2 + RANK),
            torch.ones(2, dtype=torch.float32 if RANK else torch.float64),
        ):
            with self.assertRaises(hvd.HorovodInternalError) as caught:
                hvd.allreduce(tensor, name="disagree")
            self.assertIsInstance(caught.exception, kolo.Error)
            self.assertIsInstance(caught.exception, RuntimeError)
        with self.assertRaises(hvd.HorovodInternalError):
            hvd.broadcast(torch.ones(1), RANK % 2, name="roots")
        with self.assertRaises(hvd.HorovodInternalError):
            hvd.allreduce(torch.ones(1), name="ops", op=hvd.Sum if RANK else hvd.Max)

    def test_a_name_twice(self):
        if SIZE == 1:
            return
        # Rank 0 comes last, so the first operation is under way on the others when they try again.
        if RANK == 0:
            hvd.barrier()
            handle = hvd.allreduce_async(torch.ones(1), name="twice")
        else:
            handle = hvd.allreduce_async(torch.ones(1), name="twice")
            with self.assertRaises(ValueError) as caught:
                hvd.allreduce_async(torch.ones(1), name="twice")
            self.assertIn("twice", str(caught.exception))
            hvd.barrier()
        hvd.synchronize(handle)

    def test_tensors_that_are_dropped_while_under_way(self):
        handles = []
        for i in range(20):
            tensor = torch.full([100000], float(i))
            handles.append(hvd.allreduce_async_(tensor, name=f"dropped.{i}", op=hvd.Sum))
            del tensor
        gc.collect()
        for i, handle in enumerate(handles):
            self.assertEqual(hvd.synchronize(handle)[-1].item(), i * SIZE)
        for i in range(20):  # and nobody ever waits for these
            hvd.allreduce_async_(torch.ones(100000), name=f"forgotten.{i}")
        gc.collect()
        hvd.barrier()

    def test_an_exception_in_a_hook(self):
        model = torch.nn.Linear(2, 2)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))

        def fail(_):
            raise RuntimeError("in the hook")

        handle = model.weight.register_hook(fail)
        with self.assertRaises(RuntimeError):
            model(torch.ones(1, 2)).sum().backward()
        handle.remove()
        optimizer.synchronize()
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()

    def test_a_fork(self):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                if hvd.rank() == RANK:  # who one is can be asked
                    hvd.allreduce(torch.ones(1))
            except ValueError as error:
                status = 0 if "fork" in str(error) else 2
            hvd.shutdown()
            os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_a_fork_that_ends_as_programs_do(self):
        child = os.fork()
        if child == 0:
            atexit._run_exitfuncs()
            ctypes.CDLL(None).exit(0)  # runs the destructors of the compiled module
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_buffers(self):
        import array

        numbers = array.array("d", [1.0, 2.0])
        kolo.allreduce(numbers, op=kolo.Sum)
        self.assertEqual(list(numbers), [SIZE, 2.0 * SIZE])
        tensor = kolo.allreduce(torch.ones(3), op=kolo.Sum)
        self.assertEqual(tensor.tolist(), [SIZE] * 3)
        for wrong in (None, 3, b"abc", torch.ones(2, 3).t(), array.array("u", "ab")):
            with self.assertRaises(ValueError):
                kolo.allreduce(wrong)

    def test_byte_orders(self):
        for kind in (">f4", ">i4", ">f8"):
            with self.assertRaisesRegex(ValueError, "byte order of another machine"):
                kolo.allreduce(np.full(3, 2, dtype=kind), op=kolo.Sum)
            given = np.full(3, RANK + 2, dtype=kind)
            total = sum(rank + 2 for rank in range(SIZE))
            reduced = _numpy_ops.allreduce(given, op=kolo.Sum, name=f"order {kind}")
            self.assertEqual(reduced.tolist(), [total] * 3)
            self.assertEqual(_numpy_ops.broadcast(given, 0, f"order {kind}").tolist(), [2] * 3)
            gathered = _numpy_ops.allgather(given[:1], f"order {kind}").tolist()
            self.assertEqual(gathered, [rank + 2 for rank in range(SIZE)])
        native = kolo.allreduce(np.full(3, 2, dtype="=f4"), op=kolo.Sum)
        self.assertEqual(native.tolist(), [2 * SIZE] * 3)

    def test_masked_arrays(self):
        masked = np.ma.masked_array([1.0, 2.0, 3.0], mask=[RANK > 0, 0, 1])
        for wrong in (masked, np.ma.masked_array([1.0])):
            for call in (
                kolo.allreduce,
                _numpy_ops.allreduce,
                _numpy_ops.allgather,
                _numpy_ops.alltoall,
                _numpy_ops.reducescatter,
                lambda array: _numpy_ops.broadcast(array, 0),
            ):
                with self.assertRaisesRegex(ValueError, "masked arrays cannot be exchanged"):
                    call(wrong)
        self.assertEqual(kolo.allreduce(masked.filled(0), op=kolo.Sum).tolist(), [1, 2 * SIZE, 0])
        (first, *_) = _numpy_ops.allgather_object(masked)
        self.assertEqual(first.mask.tolist(), [False, False, True])

    def test_init_and_shutdown_again(self):
        hvd.init()
        handle = hvd.allreduce_async(torch.ones(1), name="before shutdown")
        hvd.synchronize(handle)
        hvd.barrier()
        hvd.shutdown()
        self.assertFalse(hvd.is_initialized())
        with self.assertRaises(ValueError):
            hvd.size()
        with self.assertRaises(ValueError):
            hvd.allreduce(torch.ones(1))
        hvd.init()
        self.assertEqual(hvd.size(), SIZE)


class Interrupts(RankTest):
    """Ctrl-C ends each wait at once."""

    def interrupted(self, wait):
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            wait()
        timer.join()

    def test_waits(self):
        if SIZE == 1:
            return
        if RANK == 0:
            handle = hvd.allreduce_async(torch.ones(1), name="late")
            self.interrupted(lambda: hvd.synchronize(handle))
            self.interrupted(hvd.barrier)
        else:
            handle = None
        # The others were not interrupted, and what was is still under way.
        kolo.barrier()
        if RANK != 0:
            handle = hvd.allreduce_async(torch.ones(1), name="late")
            hvd.barrier()
        self.assertEqual(hvd.synchronize(handle).item(), 1.0)
        kolo.barrier()  # nobody leaves while others are still in theirs


if __name__ == "__main__":
    main()
