"""Tuning: a search of settings by validation, many at once, by any number of workers.

A Study asks which settings suit a graph.  Workers take trials from it: Optuna proposes their
settings, `fit` trains those of one shape as one batch, and what falls behind is given up.  When the
study is closed, the winner is trained anew with fresh seeds, and only then test labels are read.
"""
