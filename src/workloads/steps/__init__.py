"""Steps, one file per kind: what is timed."""

from workloads.steps.epoch import EpochStep
from workloads.steps.inference import InferenceStep
from workloads.steps.loading import LoadingStep
from workloads.steps.step import Figure, Outcome, Step
from workloads.steps.train import TrainStep

__all__ = ["EpochStep", "Figure", "InferenceStep", "LoadingStep", "Outcome", "Step", "TrainStep"]
