"""Hidden states layer by layer: how smooth they are, and what became of the information."""
