"""What was measured, as tables, pages and figures."""
