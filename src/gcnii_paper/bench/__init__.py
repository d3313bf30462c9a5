"""Speed and memory of this code and of others, measured in turn, beside a lower bound."""
