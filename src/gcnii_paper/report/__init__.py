"""Reports of what was measured: pages, tables and figures, on paper and in the terminal."""
