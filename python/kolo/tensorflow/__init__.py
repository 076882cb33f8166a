"""kolo for TensorFlow 2, with the interface of horovod.tensorflow.

import kolo.tensorflow as hvd

hvd.init()
tape = hvd.DistributedGradientTape(tape)
hvd.broadcast_variables(model.variables, root_rank=0)
"""

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
from kolo.process_sets import (
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)
from kolo.tensorflow import elastic
from kolo.tensorflow.compression import Compression
from kolo.tensorflow.functions import (
    allgather_object,
    broadcast_global_variables,
    broadcast_object,
    broadcast_object_fn,
    broadcast_variables,
)
from kolo.tensorflow.gradients import DistributedGradientTape, PartialDistributedGradientTape
from kolo.tensorflow.mpi_ops import (
    Adasum,
    Average,
    Max,
    Min,
    Product,
    Sum,
    _allreduce,
    allgather,
    allreduce,
    alltoall,
    barrier,
    broadcast,
    broadcast_,
    check_num_rank_power_of_2,
    grouped_allgather,
    grouped_allreduce,
    grouped_reducescatter,
    handle_average_backwards_compatibility,
    join,
    local_rank_op,
    local_size_op,
    process_set_included_op,
    rank_op,
    reducescatter,
    size_op,
)
from kolo.tensorflow.optimizer import BroadcastGlobalVariablesHook, DistributedOptimizer
from kolo.tensorflow.sync_batch_norm import SyncBatchNormalization
from kolo.tensorflow.util import _executing_eagerly

__all__ = [name for name in dir() if not name.startswith("_")]
