"""Ray Tune's place for this search."""

from kolo.tune.suggest import OptunaSearch

__all__ = ["OptunaSearch"]
