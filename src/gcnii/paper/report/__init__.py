"""What was measured, as pages and pictures."""
