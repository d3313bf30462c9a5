"""The paper's figures, and whether its claims about them hold."""
