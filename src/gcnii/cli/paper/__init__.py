"""Commands that reproduce the paper: reproduce, report, bench, demo, forecast."""
