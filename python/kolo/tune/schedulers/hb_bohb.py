"""HyperBand for BOHB, at Ray Tune's place for it."""

from kolo.tune.schedulers import HyperBandForBOHB

__all__ = ["HyperBandForBOHB"]
