"""Settings for any model: a test names what it would like, and gets what the model has."""

from gcnii.nn import MODELS
from gcnii.train.plan import model_defaults

ONLY_SOME = {name for model in MODELS for name in model_defaults(model)}


def fitting(model, settings):
    """`settings` without those of other models."""
    foreign = ONLY_SOME - set(model_defaults(model))
    return {name: value for name, value in settings.items() if name not in foreign}
