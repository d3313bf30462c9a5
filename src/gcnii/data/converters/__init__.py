"""Graphs made of other things: data frames, matrices, the graphs of other libraries."""
