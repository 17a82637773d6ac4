"""The subject of the suite: models, data and optimization techniques as composable parts.

Knows neither pytest nor perfgate; ``python -m workloads train`` really trains with the same parts.
"""

from workloads.comparison import comparisons
from workloads.models import GPT2, MLP, ResNet18, ResNet18Cifar, ResNet50, Transformer, ViTB16
from workloads.steps import EpochStep, InferenceStep, LoadingStep, Step, TrainStep
from workloads.workload import NotInEffect, Optimization, Parts, Tolerance, Unsuitable, Workload

__all__ = [
    "GPT2",
    "MLP",
    "EpochStep",
    "InferenceStep",
    "LoadingStep",
    "NotInEffect",
    "Optimization",
    "Parts",
    "ResNet18",
    "ResNet18Cifar",
    "ResNet50",
    "Step",
    "Tolerance",
    "TrainStep",
    "Transformer",
    "Unsuitable",
    "ViTB16",
    "Workload",
    "comparisons",
]
