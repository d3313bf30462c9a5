"""The table of our records beside the best known numbers, for all that shows it."""
