"""A trained model and its graph behind HTTP."""
