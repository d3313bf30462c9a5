"""The default for graphs without a preset: measured on many graphs, chosen with each left out."""
