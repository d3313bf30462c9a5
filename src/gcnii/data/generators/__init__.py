"""Graphs that are generated and need no download."""
