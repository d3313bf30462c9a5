"""One model, one file, one paper.  Every model is `model(P, X) → scores`.

A new model is one file here and one line in MODELS: the command line, the tests and the experiments
find it there.
"""

from gcnii.nn.ablation import MLP, DeepGCN, GCNIdentity, GCNInitial, GCNResidual
from gcnii.nn.appnp import APPNP, PPNP
from gcnii.nn.cluster_gcn import ClusterGCN
from gcnii.nn.dropedge import DropEdgeGCN, Incep
from gcnii.nn.gaan import GaAN
from gcnii.nn.gat import GAT, GATPPI
from gcnii.nn.gcn import GCN
from gcnii.nn.gcnii import GCNII, GCNIIPPI, GCNIIStar, GCNIIStarPPI, GCNIIStarPrinted
from gcnii.nn.gcnii_plus import GCNIIPlus
from gcnii.nn.geniepath import GeniePath, GeniePathLazy
from gcnii.nn.geom_gcn import GeomGCNI, GeomGCNP, GeomGCNS
from gcnii.nn.graphsage import GraphSAGELSTM, GraphSAGEMean, GraphSAGEPool
from gcnii.nn.jknet import JKNet, JKNetConcat, JKNetLSTM, JKNetMax
from gcnii.nn.model import Model, ModelCard
from gcnii.nn.sgc import SGC
from gcnii.nn.vrgcn import VRGCN, VRGCNDropout

MODELS: dict[str, type[Model]] = {
    "gcnii": GCNII,
    "gcnii-star": GCNIIStar,
    "gcnii-star-printed": GCNIIStarPrinted,
    "gcnii-plus": GCNIIPlus,
    "gcnii-ppi": GCNIIPPI,
    "gcnii-star-ppi": GCNIIStarPPI,
    "deep-gcn": DeepGCN,
    "gcn-residual": GCNResidual,
    "gcn-initial": GCNInitial,
    "gcn-identity": GCNIdentity,
    "mlp": MLP,
    "gcn": GCN,
    "sgc": SGC,
    "appnp": APPNP,
    "ppnp": PPNP,
    "gat": GAT,
    "gat-ppi": GATPPI,
    "gaan": GaAN,
    "geniepath": GeniePath,
    "geniepath-lazy": GeniePathLazy,
    "dropedge-gcn": DropEdgeGCN,
    "jknet": JKNet,
    "jknet-concat": JKNetConcat,
    "jknet-max": JKNetMax,
    "jknet-lstm": JKNetLSTM,
    "incep": Incep,
    "graphsage-mean": GraphSAGEMean,
    "graphsage-pool": GraphSAGEPool,
    "graphsage-lstm": GraphSAGELSTM,
    "vr-gcn-cv": VRGCN,
    "vr-gcn-cvd": VRGCNDropout,
    "cluster-gcn": ClusterGCN,
    "geom-gcn-i": GeomGCNI,
    "geom-gcn-p": GeomGCNP,
    "geom-gcn-s": GeomGCNS,
}
