"""Graphs that are drawn from a model and need no download."""
