"""What trained models do to nodes: accuracy by degree, hidden states layer by layer, and what becomes of them."""

from gcnii.analysis.checkup import Checkup, Doctor, Examined, examine
from gcnii.analysis.degree import Curve, Group, by_degree, curves, degrees
from gcnii.analysis.diagnosis import Baseline, Diagnosis, diagnose
from gcnii.analysis.estimate import Estimate
from gcnii.analysis.layers import Layer, Watch, watch
from gcnii.analysis.probe import Probe
from gcnii.analysis.smoothing import Smoothness, Yardstick

__all__ = [
    "Baseline",
    "Checkup",
    "Curve",
    "Diagnosis",
    "Doctor",
    "Estimate",
    "Examined",
    "Group",
    "Layer",
    "Probe",
    "Smoothness",
    "Watch",
    "Yardstick",
    "by_degree",
    "curves",
    "degrees",
    "diagnose",
    "examine",
    "watch",
]
