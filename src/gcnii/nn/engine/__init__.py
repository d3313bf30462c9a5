"""What runs the models: the skeleton of the deep ones, and ways to run its layers."""
