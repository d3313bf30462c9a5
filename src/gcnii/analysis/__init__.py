"""What a trained network does: to its hidden states, to signals on the graph, and by degree.

The names that most users need:

    watch, examine, diagnose       hidden states layer by layer, and a verdict on them
    Doctor, compare_models         models examined before and after a short training
    SmoothnessMeter, Probe         the measurements of one state
    response, influence            the filter and the reach of a trained network
    forecast                       shallower networks foretold from a deep one; no better than "2"
    by_degree, curves              accuracy by the degree of the nodes
    Study                          the paper's theorems on a graph
"""

from gcnii.analysis.filters.depth_forecast import Comparison as Comparison
from gcnii.analysis.filters.depth_forecast import Forecast as Forecast
from gcnii.analysis.filters.depth_forecast import compare_depths as compare_depths
from gcnii.analysis.filters.depth_forecast import forecast as forecast
from gcnii.analysis.filters.influence import Influence as Influence
from gcnii.analysis.filters.influence import influence as influence
from gcnii.analysis.filters.learn import Learned as Learned
from gcnii.analysis.filters.learn import learn as learn
from gcnii.analysis.filters.response import Response as Response
from gcnii.analysis.filters.response import gcn_filter as gcn_filter
from gcnii.analysis.filters.response import pagerank_filter as pagerank_filter
from gcnii.analysis.filters.response import response as response
from gcnii.analysis.layers.checkup import Checkup as Checkup
from gcnii.analysis.layers.checkup import Doctor as Doctor
from gcnii.analysis.layers.checkup import LayerReport as LayerReport
from gcnii.analysis.layers.checkup import examine as examine
from gcnii.analysis.layers.diagnosis import Diagnosis as Diagnosis
from gcnii.analysis.layers.diagnosis import ProbeBaseline as ProbeBaseline
from gcnii.analysis.layers.diagnosis import compare_models as compare_models
from gcnii.analysis.layers.diagnosis import diagnose as diagnose
from gcnii.analysis.layers.estimate import Estimate as Estimate
from gcnii.analysis.layers.probe import Probe as Probe
from gcnii.analysis.layers.smoothing import Smoothness as Smoothness
from gcnii.analysis.layers.smoothing import SmoothnessMeter as SmoothnessMeter
from gcnii.analysis.layers.states import HiddenStates as HiddenStates
from gcnii.analysis.layers.states import Layer as Layer
from gcnii.analysis.theory.karate import karate_club as karate_club
from gcnii.analysis.theory.study import Study as Study
from gcnii.analysis.watch import Watch as Watch
from gcnii.analysis.watch import watch as watch
from gcnii.metrics.degree import Curve as Curve
from gcnii.metrics.degree import DegreeGroup as DegreeGroup
from gcnii.metrics.degree import by_degree as by_degree
from gcnii.metrics.degree import curves as curves
from gcnii.metrics.degree import degrees as degrees
