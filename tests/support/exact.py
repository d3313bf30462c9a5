"""P and X in float64, for tests that compare to many digits."""

from functools import partial

import torch

from gcnii.propagation import feature_matrix, propagation_matrix

exact_matrix = partial(propagation_matrix, dtype=torch.float64)
exact_features = partial(feature_matrix, dtype=torch.float64)
