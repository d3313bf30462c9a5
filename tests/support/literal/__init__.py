"""Every model a second time: dense, in numpy and float64, straight from the papers' equations.

Each takes a function `w(name)` that returns the model's weight of that name, P and X, and the
model's settings.
"""

from support.literal.attention import ATTENTION
from support.literal.geometry import GEOMETRY
from support.literal.inductive import INDUCTIVE
from support.literal.jumping import JUMPING
from support.literal.skeletons import SKELETONS

LITERAL = SKELETONS | JUMPING | ATTENTION | GEOMETRY | INDUCTIVE
