"""How results are shown: figures, tables and HTML pages that look alike everywhere."""
