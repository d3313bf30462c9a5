"""P̃ and its relatives, and the one sparse product."""

from gcnii.propagation.diffusion import LONGEST_HEAT as LONGEST_HEAT
from gcnii.propagation.diffusion import Diffusion as Diffusion
from gcnii.propagation.diffusion import diffuse as diffuse
from gcnii.propagation.links import Direction as Direction
from gcnii.propagation.links import Geometry as Geometry
from gcnii.propagation.links import Links as Links
from gcnii.propagation.links import Loops as Loops
from gcnii.propagation.links import Norm as Norm
from gcnii.propagation.links import adjacency as adjacency
from gcnii.propagation.links import propagation_matrix as propagation_matrix
from gcnii.propagation.pagerank import resolvent as resolvent
from gcnii.propagation.relations import DIVISIONS as DIVISIONS
from gcnii.propagation.relations import Divided as Divided
from gcnii.propagation.relations import Relations as Relations
from gcnii.propagation.softmax import attend as attend
from gcnii.propagation.softmax import row_max as row_max
from gcnii.propagation.softmax import row_softmax as row_softmax
from gcnii.propagation.sparse import Pattern as Pattern
from gcnii.propagation.sparse import Sparse as Sparse
from gcnii.propagation.sparse import feature_matrix as feature_matrix
