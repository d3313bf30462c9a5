"""A page that is one file: its frame, its colours, and nothing that is not its own."""
