"""What predicts labels without being a network: label propagation, trees, regression."""
