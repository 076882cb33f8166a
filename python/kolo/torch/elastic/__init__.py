"""Training that survives failures, with the interface of horovod.torch.elastic.

The set of ranks is fixed for now: hosts neither come nor go while a job runs. States commit, restore
and sync as Horovod's do, and ``run`` starts again from the last commit after an error that all ranks
survived.
"""

from kolo._elastic import ObjectState, State, run_fn
from kolo._errors import HorovodInternalError, HostsUpdatedInterrupt
from kolo.torch.elastic.sampler import ElasticSampler
from kolo.torch.elastic.state import TorchState, run

__all__ = [
    "ElasticSampler",
    "HorovodInternalError",
    "HostsUpdatedInterrupt",
    "ObjectState",
    "State",
    "TorchState",
    "run",
    "run_fn",
]
