"""Results and runs → tables, plots and progress bars, for people to look at."""
