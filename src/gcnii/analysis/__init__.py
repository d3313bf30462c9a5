"""What trained models do to nodes: accuracy by degree."""

from gcnii.analysis.degree import Curve, Group, by_degree, curves, degrees

__all__ = ["Curve", "Group", "by_degree", "curves", "degrees"]
