"""Training: Recipe, fit (the only loop), replicas, stopping, checkpoints, bundles.

Nothing is imported here, so that `gcnii data show` reads the presets without waiting for torch;
`gcnii.fit` and the like are the public names.
"""
