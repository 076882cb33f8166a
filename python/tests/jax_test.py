"""kolo.jax, plain and inside jit."""

import jax
import numpy as np
from ranks import RankTest, main

import kolo.jax as hvd

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()


class Jax(RankTest):
    def test_plain(self):
        tree = {"a": jax.numpy.ones(3) * (RANK + 1), "b": [jax.numpy.zeros(())]}
        result = hvd.allreduce(tree, op=hvd.Sum)
        self.assertTrue(np.allclose(result["a"], SIZE * (SIZE + 1) / 2))
        self.assertEqual(hvd.broadcast(jax.numpy.array([RANK]), SIZE - 1)[0], SIZE - 1)
        self.assertEqual(
            hvd.allgather(jax.numpy.zeros((RANK + 1, 2))).shape[0], SIZE * (SIZE + 1) // 2
        )
        hvd.barrier()

    def test_inside_jit(self):
        @jax.jit
        def step(weights, x):
            gradient = jax.grad(lambda w: ((w * x) ** 2).sum())(weights)
            return weights - 0.1 * hvd.average_gradients(gradient), hvd.allgather(x)

        weights, everybody = step(jax.numpy.ones(2), jax.numpy.ones(2) * RANK)
        expected = 1 - 0.1 * np.mean([2.0 * rank**2 for rank in range(SIZE)])
        self.assertTrue(np.allclose(weights, expected))
        self.assertEqual(everybody.shape, (2 * SIZE,))

    def test_inside_jit_nothing_calls_python(self):
        @jax.jit
        def several(x):
            sums = [hvd.allreduce(x + i, op=hvd.Sum) for i in range(8)]
            return sums, hvd.broadcast({"x": x}, SIZE - 1), hvd.allreduce(x.astype("bfloat16"))

        mine = jax.numpy.full((3,), float(RANK))
        text = several.lower(mine).as_text()
        self.assertEqual(text.count("@kolo_allreduce"), 9)
        self.assertNotIn("callback", text)
        for _ in range(20):
            sums, sent, averaged = several(mine)
        for i, total in enumerate(sums):
            self.assertTrue(np.allclose(total, SIZE * (SIZE - 1) / 2 + i * SIZE))
        self.assertTrue(np.allclose(sent["x"], SIZE - 1))
        self.assertTrue(np.allclose(averaged.astype("float32"), (SIZE - 1) / 2))

    def test_ranks_that_disagree_inside_jit(self):
        if SIZE == 1:
            return
        reduce = jax.jit(lambda x: hvd.allreduce(x, name="disagree"))
        with self.assertRaisesRegex(Exception, "disagree"):
            jax.block_until_ready(reduce(jax.numpy.ones(2 + RANK)))
        self.assertTrue(np.allclose(jax.jit(hvd.average_gradients)(jax.numpy.ones(2)), 1))


if __name__ == "__main__":
    main()
