"""P̃ and its relatives, and the one sparse product."""

from gcnii.propagation.adjacency import (
    Adjacency,
    Direction,
    Geometry,
    Loops,
    Norm,
    Propagation,
    TypedAdjacency,
    adjacency,
    adjacency_of_types,
    propagation_matrix,
)
from gcnii.propagation.diffusion import Diffusion, diffuse
from gcnii.propagation.relations import RelationalAdjacency, RelationalMatrix
from gcnii.propagation.sparse import Sparse, feature_matrix, to_dense, to_matrix
from gcnii.propagation.types import TypedMatrix
