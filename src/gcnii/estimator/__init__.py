"""GCNIIClassifier: a network on a graph, or on nearest neighbours, as a scikit-learn classifier."""

from gcnii.estimator.classifier import GCNIIClassifier as GCNIIClassifier
