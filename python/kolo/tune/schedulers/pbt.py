"""Population based training, at Ray Tune's place for it."""

from kolo.tune.schedulers import PopulationBasedTraining, PopulationBasedTrainingReplay

__all__ = ["PopulationBasedTraining", "PopulationBasedTrainingReplay"]
