"""Deep graph convolutional networks for node classification: GCNII (Chen et al., ICML 2020).

    graph = gcnii.load("cora")                       # or a file or folder of your own
    result = gcnii.fit(graph, "gcnii", layers=64, seeds=range(3))
    result.evaluate()
    result.save("runs/cora")
    model = gcnii.open_bundle("runs/cora")
    model.predict(graph)

`dir(gcnii)` lists the public names, and `help` describes each.  They are loaded when first used, so
that `gcnii --help` need not wait for torch.  Training is logged under the name `gcnii`, and nothing
is printed unless logging is configured: `logging.basicConfig(level="INFO")`.
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
    from gcnii.analysis.report import watch as watch
    from gcnii.data.converters.frames import from_frames as from_frames
    from gcnii.data.converters.join import join as join
    from gcnii.data.converters.networkx_graph import from_networkx as from_networkx
    from gcnii.data.converters.pyg_data import from_pyg as from_pyg
    from gcnii.data.converters.query import from_query as from_query
    from gcnii.data.converters.scipy_matrix import from_scipy as from_scipy
    from gcnii.data.formats.packed import save as save
    from gcnii.data.load import load as load
    from gcnii.data.splits import split_by_time as split_by_time
    from gcnii.data.splits import stratified_split as stratified_split
    from gcnii.errors import BundleError as BundleError
    from gcnii.errors import DataError as DataError
    from gcnii.errors import GcniiError as GcniiError
    from gcnii.errors import GraphError as GraphError
    from gcnii.errors import InputError as InputError
    from gcnii.estimator import GCNIIClassifier as GCNIIClassifier
    from gcnii.estimator import GCNIIRegressor as GCNIIRegressor
    from gcnii.graph import Graph as Graph
    from gcnii.graph import Split as Split
    from gcnii.inference.answers import to_table as to_table
    from gcnii.inference.export import export_onnx as export_onnx
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

_PACKAGES = ("analysis", "data", "inference", "nn")
# public name → the module that has it; the imports for type checkers above say the same
_HOME = {
    # graphs: read, convert, join, split, save
    "Graph": "graph",
    "Split": "graph",
    "load": "data.load",
    "from_frames": "data.converters.frames",
    "from_networkx": "data.converters.networkx_graph",
    "from_pyg": "data.converters.pyg_data",
    "from_query": "data.converters.query",
    "from_scipy": "data.converters.scipy_matrix",
    "join": "data.converters.join",
    "split_by_time": "data.splits",
    "stratified_split": "data.splits",
    "save": "data.formats.packed",
    # training
    "fit": "results.fit",
    "tune": "tuning.tune",
    "Recipe": "train.recipe",
    "Result": "results.result",
    "open_bundle": "results.bundle",
    "to_table": "inference.answers",
    "export_onnx": "inference.export",
    "GCNIIClassifier": "estimator",
    "GCNIIRegressor": "estimator",
    # callbacks of fit
    "CsvLog": "train.callbacks",
    "TensorBoard": "train.callbacks",
    "EpochReport": "train.callbacks",
    "StopTraining": "train.callbacks",
    # parts for a training loop of your own
    "feature_matrix": "propagation",
    "propagation_matrix": "propagation",
    "watch": "analysis.report",
    # errors
    "GcniiError": "errors",
    "InputError": "errors",
    "GraphError": "errors",
    "DataError": "errors",
    "BundleError": "errors",
    "Diverged": "train.group",
}

logging.getLogger("gcnii").addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        return import_module(f"gcnii.{name}")
    if name in _HOME:
        return getattr(import_module(f"gcnii.{_HOME[name]}"), name)
    raise AttributeError(f"gcnii has no {name!r}; it has {', '.join(__dir__())}")


def __dir__() -> list[str]:
    return [*_PACKAGES, *sorted(_HOME), "__version__"]
