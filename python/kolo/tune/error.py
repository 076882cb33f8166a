"""Errors of studies, at Ray Tune's place for them."""

from kolo._errors import FailureError, InvalidArgumentError, NotFoundError


class TuneError(FailureError):
    """Trials failed, or what was given is no study."""


class SettingError(InvalidArgumentError, TuneError):
    """A scheduler or an experiment cannot work like that."""


class UntrainableError(SettingError, TypeError):
    """What is to be trained is neither a function nor a class of Trainable."""


class UnknownTrainableError(NotFoundError, TuneError):
    """Nothing was registered under the name."""
