"""Hostile input: damaged files, lying servers, kills and full disks, drawn by seed.

Each kind draws its cases from `random.Random(f"{kind} {seed}")`, so a seed is a case: `run.py` runs
thousands and prints a table, the tests run some of each, and both name the seed of a failure.
"""
