"""Every model once more: dense, in numpy and float64, straight from the equations of the papers.

Each takes a function `w(name)` that gives the model's weight of that name, P and X, and a model's
settings.
"""

from support.literal.attention import ATTENTION
from support.literal.geometry import GEOMETRY
from support.literal.inductive import INDUCTIVE
from support.literal.jumping import JUMPING
from support.literal.skeletons import SKELETONS

LITERAL = SKELETONS | JUMPING | ATTENTION | GEOMETRY | INDUCTIVE
