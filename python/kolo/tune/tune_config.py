"""What a study searches for, and how. The names and defaults are Ray Tune's."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any, Callable, Optional, Union

from kolo._errors import constructor_suggests


@constructor_suggests
@dataclass
class TuneConfig:
    """For Tuner: the parameters of tune.run with the same names. ``chdir_to_trial_dir`` changes nothing:
    trials that are threads share their folder; session.get_trial_dir() is that of the trial."""

    mode: Optional[str] = None
    metric: Optional[str] = None
    search_alg: Any = None
    scheduler: Any = None
    num_samples: int = 1
    max_concurrent_trials: Optional[int] = None
    time_budget_s: Union[None, float, datetime.timedelta] = None
    reuse_actors: Optional[bool] = None
    trial_name_creator: Optional[Callable[..., str]] = None
    trial_dirname_creator: Optional[Callable[..., str]] = None
    chdir_to_trial_dir: bool = True
