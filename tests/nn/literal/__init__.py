"""Every model once more: dense, in numpy and float64, straight from the equations of the papers.

Each takes a function `w(name)` that gives the model's weight of that name, P and X, and a model's settings.
"""

from literal.attention import ATTENTION
from literal.geometry import GEOMETRY
from literal.inductive import INDUCTIVE
from literal.jumping import JUMPING
from literal.skeletons import SKELETONS

LITERAL = SKELETONS | JUMPING | ATTENTION | GEOMETRY | INDUCTIVE
