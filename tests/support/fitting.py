"""Settings for any model: a test names what it would like, and gets what the model takes."""

from gcnii.nn import MODELS
from gcnii.train.plan import model_defaults

ONLY_SOME = {name for model in MODELS for name in model_defaults(model)}
AT_MOST = {"jknet-lstm": {"width": 8}}  # its LSTM has layers · width / 2 states
# The published settings are for large graphs: 50 clusters of 120 nodes are hardly more than nodes.
SMALLER = {"cluster-gcn": {"clusters": 2}, "graphsage-lstm": {"fanout": (4,)}}


def fitting(model, settings):
    """`settings` without those of other models, and small enough for small graphs."""
    foreign, most = ONLY_SOME - set(model_defaults(model)), AT_MOST.get(model, {})
    own = {name: value for name, value in settings.items() if name not in foreign}
    if "geometry" in MODELS[model].card.recipe:
        own = {"geometry": "isomap"} | own  # available for any graph
    return SMALLER.get(model, {}) | {
        name: min(own[name], most[name]) if name in most else own[name] for name in own
    }
