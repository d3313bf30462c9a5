"""The paper's tables and figures, cell by cell, with the numbers that it prints."""
