"""Settings for any model: a test names what it would like, and gets what the model has."""

from gcnii.nn import MODELS
from gcnii.train.plan import model_defaults

AT_MOST = {"jknet-lstm": {"width": 8}}  # its LSTM has layers · width / 2 states
ONLY_SOME = {name for model in MODELS for name in model_defaults(model)}


def fitting(model, settings):
    """`settings` without those of other models, and none larger than this one can bear in a test."""
    foreign, most = ONLY_SOME - set(model_defaults(model)), AT_MOST.get(model, {})
    own = {name: value for name, value in settings.items() if name not in foreign}
    return {name: min(value, most[name]) if name in most else value for name, value in own.items()}
