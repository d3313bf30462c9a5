"""P̃ and its relatives, and the one sparse product."""

from gcnii.propagation.adjacency import Direction as Direction
from gcnii.propagation.adjacency import Geometry as Geometry
from gcnii.propagation.adjacency import GraphAdjacency as GraphAdjacency
from gcnii.propagation.adjacency import Loops as Loops
from gcnii.propagation.adjacency import Norm as Norm
from gcnii.propagation.adjacency import adjacency as adjacency
from gcnii.propagation.adjacency import propagation_matrix as propagation_matrix
from gcnii.propagation.attention import attend as attend
from gcnii.propagation.attention import row_max as row_max
from gcnii.propagation.attention import row_softmax as row_softmax
from gcnii.propagation.diffusion import LONGEST_HEAT as LONGEST_HEAT
from gcnii.propagation.diffusion import Diffusion as Diffusion
from gcnii.propagation.diffusion import diffuse as diffuse
from gcnii.propagation.pagerank import resolvent as resolvent
from gcnii.propagation.relations import DIVISIONS as DIVISIONS
from gcnii.propagation.relations import RelationalAdjacency as RelationalAdjacency
from gcnii.propagation.relations import RelationalMatrix as RelationalMatrix
from gcnii.propagation.sparse import Pattern as Pattern
from gcnii.propagation.sparse import Sparse as Sparse
from gcnii.propagation.sparse import feature_matrix as feature_matrix
