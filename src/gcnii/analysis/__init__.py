"""What trained models do to nodes: accuracy by degree, hidden states layer by layer, and what
becomes of them.
"""

from gcnii.analysis.layers.checkup import Checkup, Doctor, LayerReport, examine
from gcnii.analysis.layers.diagnosis import Baseline, Diagnosis, diagnose
from gcnii.analysis.layers.estimate import Estimate
from gcnii.analysis.layers.probe import Probe
from gcnii.analysis.layers.smoothing import Smoothness, SmoothnessMeter
from gcnii.analysis.layers.states import Layer, Watch, watch
from gcnii.metrics.degree import Curve, DegreeGroup, by_degree, curves, degrees

__all__ = [
    "Baseline",
    "Checkup",
    "Curve",
    "DegreeGroup",
    "Diagnosis",
    "Doctor",
    "Estimate",
    "Layer",
    "LayerReport",
    "Probe",
    "Smoothness",
    "SmoothnessMeter",
    "Watch",
    "by_degree",
    "curves",
    "degrees",
    "diagnose",
    "examine",
    "watch",
]
