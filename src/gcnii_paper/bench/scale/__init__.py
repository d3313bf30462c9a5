"""`gcnii bench scale`: growth in size, over processes, and what was planned beside it."""
