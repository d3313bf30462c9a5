"""Training: Recipe, presets, plans, the loop over groups of replicas, stopping, checkpoints.

Nothing is imported here, so that `gcnii data show` reads the presets without waiting for torch;
`gcnii.fit` and the like are the public names.
"""
