"""Experiments as values: what is trained, on what, with which settings."""
