"""Graph and Split: what all other rooms work on."""

from gcnii.graph.arrays import Features as Features
from gcnii.graph.graph import ROLES as ROLES
from gcnii.graph.graph import Graph as Graph
from gcnii.graph.graph import Role as Role
from gcnii.graph.graph import Split as Split
from gcnii.graph.graph import splits_of as splits_of
from gcnii.graph.piece import GlobalIndices as GlobalIndices
from gcnii.graph.piece import Piece as Piece
from gcnii.graph.piece import Whole as Whole
