"""Deep graph convolutional networks for node classification: GCNII (Chen et al., ICML 2020).

    load             a data set of the catalog, or a graph of your own, as a Graph
    Graph, Split     nodes, edges, labels; who trains, validates and tests
    from_frames      data frames of nodes and edges, of pandas, polars or pyarrow, as a Graph
    from_networkx, from_scipy, from_pyg   a graph of another library, or of matrices, as a Graph
    save             a Graph as one .safetensors file, which `load` reads at once
    join             several graphs as one
    stratified_split   a random Split of the labelled nodes, 60/20/20 of each class
    fit              train a model: fit(graph, "gcnii", layers=64, seeds=range(3)) → Result
    tune             search settings by validation: tune(graph, budget="10m") → the winner, trained
    Recipe           every setting of training
    Result           scores, weights, predict, evaluate, save
    open_bundle      a Result that was saved
    GCNIIClassifier  the same as a scikit-learn classifier of node ids, or of rows without a graph
    CsvLog, TensorBoard   callbacks of fit that write curves while it trains
    EpochReport      what a callback is told; one that raises StopTraining ends the training
    watch            the hidden states of any model, layer by layer
    propagation_matrix, feature_matrix   P and X, for the models in a loop of your own
    nn               the models: nn.GCNII and those it is compared with
    data             the catalog and its readers
    analysis         the doctor, learned filters
    inference        the table of labels, for the nodes of a graph or for new ones
    GcniiError       the base class of all errors: InputError, GraphError, DataError, BundleError,
                     Diverged

The names are loaded when first used, so that `gcnii --help` need not wait for torch.  Trainings are
logged under the name `gcnii`, and nothing is printed unless logging is configured:
`logging.basicConfig(level="INFO")`.
"""

import logging
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "1.0.0"

# MKL adds in the same order whatever the number of threads, at the same speed.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
# Threads of GNU's OpenMP wait for one another by spinning for milliseconds; where other processes
# are busy, the one that is waited for has no core, because another spins on it.  Short spins cost
# an idle machine nothing.  The library reads this once, when torch is loaded.
if "torch" not in sys.modules and "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")

if TYPE_CHECKING:
    from gcnii import analysis as analysis
    from gcnii import data as data
    from gcnii import inference as inference
    from gcnii import nn as nn
    from gcnii.analysis.watch import watch as watch
    from gcnii.data.converters.frames import from_frames as from_frames
    from gcnii.data.converters.join import join as join
    from gcnii.data.converters.networkx_graph import from_networkx as from_networkx
    from gcnii.data.converters.pyg_data import from_pyg as from_pyg
    from gcnii.data.converters.scipy_matrix import from_scipy as from_scipy
    from gcnii.data.formats.packed import save as save
    from gcnii.data.load import load as load
    from gcnii.data.splits import stratified_split as stratified_split
    from gcnii.errors import BundleError as BundleError
    from gcnii.errors import DataError as DataError
    from gcnii.errors import GcniiError as GcniiError
    from gcnii.errors import GraphError as GraphError
    from gcnii.errors import InputError as InputError
    from gcnii.estimator import GCNIIClassifier as GCNIIClassifier
    from gcnii.graph import Graph as Graph
    from gcnii.graph import Split as Split
    from gcnii.propagation import feature_matrix as feature_matrix
    from gcnii.propagation import propagation_matrix as propagation_matrix
    from gcnii.results.bundle import open_bundle as open_bundle
    from gcnii.results.fit import fit as fit
    from gcnii.results.result import Result as Result
    from gcnii.train.callbacks import CsvLog as CsvLog
    from gcnii.train.callbacks import EpochReport as EpochReport
    from gcnii.train.callbacks import StopTraining as StopTraining
    from gcnii.train.callbacks import TensorBoard as TensorBoard
    from gcnii.train.group import Diverged as Diverged
    from gcnii.train.recipe import Recipe as Recipe
    from gcnii.tuning.tune import tune as tune

_ROOMS = ("analysis", "data", "inference", "nn")
_HOME = {
    **dict.fromkeys(
        ("BundleError", "DataError", "GcniiError", "GraphError", "InputError"), "errors"
    ),
    **dict.fromkeys(("Graph", "Split"), "graph"),
    **dict.fromkeys(("feature_matrix", "propagation_matrix"), "propagation"),
    "Result": "results.result",
    "open_bundle": "results.bundle",
    **{
        "from_frames": "data.converters.frames",
        "from_networkx": "data.converters.networkx_graph",
        "from_pyg": "data.converters.pyg_data",
        "from_scipy": "data.converters.scipy_matrix",
        "join": "data.converters.join",
        "save": "data.formats.packed",
        "load": "data.load",
        "stratified_split": "data.splits",
        "fit": "results.fit",
        "Recipe": "train.recipe",
        "tune": "tuning.tune",
    },
    **dict.fromkeys(("CsvLog", "EpochReport", "StopTraining", "TensorBoard"), "train.callbacks"),
    **{"Diverged": "train.group", "watch": "analysis.watch"},
    **{"GCNIIClassifier": "estimator"},
}

logging.getLogger("gcnii").addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return import_module(f"gcnii.{name}")
    if name in _HOME:
        return getattr(import_module(f"gcnii.{_HOME[name]}"), name)
    raise AttributeError(f"gcnii has no {name!r}; it has {', '.join(__dir__())}")


def __dir__() -> list[str]:
    return [*_ROOMS, *sorted(_HOME), "__version__"]
