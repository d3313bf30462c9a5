"""What a training gives: its runs, their weights, what they predict, and the bundle on disk."""
