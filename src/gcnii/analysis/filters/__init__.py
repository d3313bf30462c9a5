"""The filter that a trained network is, how far it looks, and the depth that it recommends."""
