"""kolo for Keras 3 on TensorFlow, torch and JAX, with the interface of horovod.keras and
horovod.tensorflow.keras."""

import keras as _keras

from kolo import run
from kolo._basics import (
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    rocm_built,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from kolo._errors import Error, HorovodInternalError, HostsUpdatedInterrupt
from kolo._numpy_ops import Adasum, Average, Sum, allgather_object, broadcast_object
from kolo.keras import callbacks, elastic
from kolo.keras._optimizer import DistributedOptimizer, PartialDistributedOptimizer
from kolo.keras.functions import allgather, allreduce, broadcast, load_model, reducescatter
from kolo.process_sets import (
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)

if _keras.backend.backend() == "torch":
    from kolo.torch.compression import Compression
elif _keras.backend.backend() == "tensorflow":
    from kolo.tensorflow.compression import Compression  # type: ignore[assignment]
    from kolo.tensorflow.functions import broadcast_global_variables, broadcast_variables
else:

    class Compression:  # type: ignore[no-redef]
        """Gradients of JAX travel as they are."""

        none = None


__all__ = [name for name in dir() if not name.startswith("_")]
