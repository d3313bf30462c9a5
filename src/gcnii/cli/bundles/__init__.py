"""Commands about a bundle: what a trained model says, how well, why, and all of it on a page."""
