"""Who a rank is, what is built in, the timeline, and the less usual forms of collectives."""

import json
import os
import tempfile

import torch
from ranks import RankTest, main

import kolo.torch as hvd

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()


class Places(RankTest):
    def test_one_host(self):
        self.assertEqual((hvd.local_rank(), hvd.local_size()), (RANK, SIZE))
        self.assertEqual((hvd.cross_rank(), hvd.cross_size()), (0, 1))
        self.assertTrue(hvd.is_homogeneous())

    def test_what_is_built_in(self):
        self.assertTrue(hvd.gloo_built() and hvd.gloo_enabled())
        self.assertFalse(hvd.mpi_enabled())
        self.assertIn(hvd.mpi_built(), (True, False))
        with self.assertRaises(ValueError):
            hvd.mpi_threads_supported()
        self.assertEqual(hvd.nccl_built(), 0)
        for built in (hvd.ddl_built, hvd.ccl_built, hvd.cuda_built, hvd.rocm_built):
            self.assertFalse(built())
        self.assertIsNone(hvd.check_extension("horovod.torch", "HOROVOD_WITH_PYTORCH", __file__))

    def test_process_sets(self):
        everybody = hvd.ProcessSet(range(SIZE))
        self.assertIsNone(everybody.size())
        with self.assertRaises(ValueError):
            hvd.allreduce(torch.ones(1), process_set=everybody)
        with self.assertRaises(ValueError):
            hvd.add_process_set([SIZE])
        self.assertEqual(hvd.global_process_set.ranks, list(range(SIZE)))
        text = f"ProcessSet(process_set_id=0, ranks={list(range(SIZE))}, mpi_comm=None)"
        self.assertEqual(str(hvd.global_process_set), text)
        known = hvd.mpi_ops._basics._get_process_set_ids_and_ranks()
        self.assertEqual(known, {0: list(range(SIZE))})
        with self.assertRaises(ValueError):
            hvd.add_process_set(range(SIZE))

    def test_interrupts_say_whether_to_sync(self):
        self.assertFalse(hvd.HostsUpdatedInterrupt().skip_sync)
        self.assertTrue(hvd.HostsUpdatedInterrupt(True).skip_sync)

    def test_timeline(self):
        path = hvd.broadcast_object(tempfile.mktemp(), root_rank=0)
        hvd.start_timeline(path, mark_cycles=True)
        hvd.allreduce(torch.ones(3), name="seen")
        hvd.stop_timeline()
        if RANK == 0:
            with open(path) as file:
                events = json.load(file)
            os.unlink(path)
            seen = [e["name"] for e in events if e.get("tid") == "allreduce.seen"]
            self.assertEqual(sorted(set(seen)), ["ALLREDUCE", "NEGOTIATE_ALLREDUCE", "ready"])
            self.assertIn("CYCLE_START", [event["name"] for event in events])
            self.assertIn("start_time_since_epoch_in_micros", events[0]["args"])


class Forms(RankTest):
    def test_broadcasts_that_were_started(self):
        given = torch.full([3], float(RANK))
        result = hvd.synchronize(hvd.broadcast_async(given, SIZE - 1))
        self.assertEqual(result.tolist(), [SIZE - 1] * 3)
        self.assertEqual(given.tolist(), [RANK] * 3)
        self.assertIs(hvd.synchronize(hvd.broadcast_async_(given, 0)), given)
        self.assertEqual(given.tolist(), [0] * 3)

    def test_a_reducescatter_that_was_started(self):
        handle = hvd.reducescatter_async(torch.full([SIZE], float(RANK)), op=hvd.Sum)
        self.assertEqual(hvd.synchronize(handle).tolist(), [SIZE * (SIZE - 1) / 2])

    def test_groups_that_were_started(self):
        tensors = [torch.ones(SIZE), torch.ones(SIZE, 2)]
        gathered = hvd.synchronize(hvd.grouped_allgather_async(tensors))
        self.assertEqual([list(t.shape) for t in gathered], [[SIZE * SIZE], [SIZE * SIZE, 2]])
        scattered = hvd.synchronize(hvd.grouped_reducescatter_async(tensors, op=hvd.Sum))
        self.assertEqual([list(t.shape) for t in scattered], [[1], [1, 2]])
        handle = hvd.grouped_allreduce_async_(tensors, op=hvd.Sum)
        self.assertIs(hvd.synchronize(handle)[0], tensors[0])
        self.assertEqual(tensors[0].tolist(), [SIZE] * SIZE)


if __name__ == "__main__":
    main()
