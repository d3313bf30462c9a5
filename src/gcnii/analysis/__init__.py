"""What a trained network does: to its hidden states, to signals on the graph, and by degree.

The names that most users need:

    watch, examine, diagnose       hidden states layer by layer, and a verdict on them
    Doctor, compare_models         models examined before and after a short training
    SmoothnessMeter, Probe         the measurements of one state
    response, influence            the filter and the reach of a trained network
    by_degree                      accuracy by the degree of the nodes
"""

import warnings
from importlib import import_module

from gcnii.analysis.checkup import Checkup as Checkup
from gcnii.analysis.checkup import Diagnosis as Diagnosis
from gcnii.analysis.checkup import Doctor as Doctor
from gcnii.analysis.checkup import LayerReport as LayerReport
from gcnii.analysis.checkup import Probe as Probe
from gcnii.analysis.checkup import ProbeBaseline as ProbeBaseline
from gcnii.analysis.checkup import compare_models as compare_models
from gcnii.analysis.checkup import diagnose as diagnose
from gcnii.analysis.checkup import examine as examine
from gcnii.analysis.degree import by_degree as by_degree
from gcnii.analysis.degree import degrees as degrees
from gcnii.analysis.filters import Influence as Influence
from gcnii.analysis.filters import Learned as Learned
from gcnii.analysis.filters import Response as Response
from gcnii.analysis.filters import gcn_filter as gcn_filter
from gcnii.analysis.filters import influence as influence
from gcnii.analysis.filters import learn as learn
from gcnii.analysis.filters import pagerank_filter as pagerank_filter
from gcnii.analysis.filters import response as response
from gcnii.analysis.report import Watch as Watch
from gcnii.analysis.report import watch as watch
from gcnii.analysis.smoothing import SampledValue as SampledValue
from gcnii.analysis.smoothing import Smoothness as Smoothness
from gcnii.analysis.smoothing import SmoothnessMeter as SmoothnessMeter
from gcnii.analysis.states import HiddenStates as HiddenStates
from gcnii.analysis.states import Layer as Layer

FIGURE_1 = ("Curve", "DegreeGroup", "curves")
MOVED = {
    **{name: f"gcnii_paper.report.figures.{name}" for name in FIGURE_1},
    "Estimate": "gcnii.analysis.SampledValue",
    "Study": "gcnii_paper.theory.Study",
    "karate_club": "gcnii_paper.theory.karate_club",
}


def __getattr__(name: str) -> object:
    if name not in MOVED:
        raise AttributeError(f"gcnii.analysis has no {name!r}")
    module, _, new = MOVED[name].rpartition(".")
    moved = f"gcnii.analysis.{name} is deprecated; use {MOVED[name]}"
    warnings.warn(moved, DeprecationWarning, stacklevel=2)
    return getattr(import_module(module), new)
