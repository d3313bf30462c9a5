"""The paper's theorems, with numbers."""
