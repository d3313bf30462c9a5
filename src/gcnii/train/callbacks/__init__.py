"""Callbacks of `fit`: what they are told, the progress bar, and writers of curves."""
