"""Search for settings that nobody published."""
