"""Training that goes on when ranks come and go, with the interface of horovod.torch.elastic.

Started by ``kolo run --min-np 2 --max-np 4 python train.py`` (docs/elastic-runs.md). In a job with a
fixed number of ranks ``run`` starts again from the last commit after an error that all ranks survived.
"""

from kolo._elastic import ObjectState, State, root_rank, run_fn
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
    "root_rank",
    "run",
    "run_fn",
]
