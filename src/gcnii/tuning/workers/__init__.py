"""Workers: each takes trials from a storage, trains them batch by batch, and tells what came out.

Any number of them share a study: processes of one command, jobs of Slurm, or commands on many
machines.
"""
