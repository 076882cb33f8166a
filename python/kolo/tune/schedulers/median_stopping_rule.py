"""The median rule, at Ray Tune's place for it."""

from kolo.tune.schedulers import MedianStoppingRule

__all__ = ["MedianStoppingRule"]
