"""What predicts labels without being a network: label propagation, and trees."""
