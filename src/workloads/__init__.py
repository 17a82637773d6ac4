"""The subject of the suite: models, data and optimization techniques as composable parts.

Knows neither pytest nor perfgate; ``python -m workloads train`` really trains with the same parts.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workloads.comparison import comparisons
    from workloads.models import GPT2, MLP, ResNet18, ResNet18Cifar, ResNet50, Transformer, ViTB16
    from workloads.steps import EpochStep, InferenceStep, LoadingStep, Step, TrainStep
    from workloads.workload import NotInEffect, Optimization, Parts, Tolerance, Unsuitable, Workload
else:
    HOMES = {
        "comparison": ("comparisons",),
        "models": ("GPT2", "MLP", "ResNet18", "ResNet18Cifar", "ResNet50", "Transformer", "ViTB16"),
        "steps": ("EpochStep", "InferenceStep", "LoadingStep", "Step", "TrainStep"),
        "workload": ("NotInEffect", "Optimization", "Parts", "Tolerance", "Unsuitable", "Workload"),
    }

    def __getattr__(name: str) -> object:
        """A public name or a module, loaded at first use: the command line reads its options before torch is there."""
        for home, names in HOMES.items():
            if name in names:
                return getattr(import_module(f"workloads.{home}"), name)
        try:
            return import_module(f"workloads.{name}")
        except ModuleNotFoundError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None

    def __dir__() -> list[str]:
        """Public names, too, before their first use."""
        return sorted({*globals(), *__all__})


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
