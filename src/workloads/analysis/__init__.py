"""Analysis of a workload's training step: size, memory, time, and what of the machine it uses."""

from workloads.analysis.analysis import Analysis, Times, analyse
from workloads.analysis.step import AnalysisStep

__all__ = ["Analysis", "AnalysisStep", "Times", "analyse"]
