"""The study of the paper: its tables, figures and theorems reproduced and judged; bench."""
