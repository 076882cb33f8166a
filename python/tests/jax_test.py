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


if __name__ == "__main__":
    main()
