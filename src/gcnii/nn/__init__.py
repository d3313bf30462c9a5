"""One model, one file, one paper.  Every model is `model(P, X) → scores`.

A new model is one file here and one line in MODELS: the command line, the tests and the experiments
find it there.
"""

from gcnii.nn.ablation import MLP as MLP
from gcnii.nn.ablation import DeepGCN as DeepGCN
from gcnii.nn.ablation import GCNIdentity as GCNIdentity
from gcnii.nn.ablation import GCNInitial as GCNInitial
from gcnii.nn.ablation import GCNResidual as GCNResidual
from gcnii.nn.appnp import APPNP as APPNP
from gcnii.nn.appnp import PPNP as PPNP
from gcnii.nn.cluster_gcn import ClusterGCN as ClusterGCN
from gcnii.nn.dropedge import DropEdgeGCN as DropEdgeGCN
from gcnii.nn.dropedge import Incep as Incep
from gcnii.nn.gaan import GaAN as GaAN
from gcnii.nn.gat import GAT as GAT
from gcnii.nn.gat import GATPPI as GATPPI
from gcnii.nn.gcn import GCN as GCN
from gcnii.nn.gcnii import GCNII as GCNII
from gcnii.nn.gcnii import GCNIIPPI as GCNIIPPI
from gcnii.nn.gcnii import GCNIIStar as GCNIIStar
from gcnii.nn.gcnii import GCNIIStarPPI as GCNIIStarPPI
from gcnii.nn.gcnii import GCNIIStarPrinted as GCNIIStarPrinted
from gcnii.nn.gcnii_plus import GCNIIPlus as GCNIIPlus
from gcnii.nn.geniepath import GeniePath as GeniePath
from gcnii.nn.geniepath import GeniePathLazy as GeniePathLazy
from gcnii.nn.geom_gcn import GeomGCNI as GeomGCNI
from gcnii.nn.geom_gcn import GeomGCNP as GeomGCNP
from gcnii.nn.geom_gcn import GeomGCNS as GeomGCNS
from gcnii.nn.graphsage import GraphSAGELSTM as GraphSAGELSTM
from gcnii.nn.graphsage import GraphSAGEMean as GraphSAGEMean
from gcnii.nn.graphsage import GraphSAGEPool as GraphSAGEPool
from gcnii.nn.jknet import JKNet as JKNet
from gcnii.nn.jknet import JKNetConcat as JKNetConcat
from gcnii.nn.jknet import JKNetLSTM as JKNetLSTM
from gcnii.nn.jknet import JKNetMax as JKNetMax
from gcnii.nn.model import Model as Model
from gcnii.nn.model import ModelCard as ModelCard
from gcnii.nn.sgc import SGC as SGC
from gcnii.nn.vrgcn import VRGCN as VRGCN
from gcnii.nn.vrgcn import VRGCNDropout as VRGCNDropout

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
