"""The study of the paper: its tables and figures reproduced, judged and reported; bench."""
