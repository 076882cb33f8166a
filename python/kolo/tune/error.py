"""Errors of studies, at Ray Tune's place for them."""

from kolo._errors import FailureError


class TuneError(FailureError):
    """Trials failed, or what was given is no study."""
