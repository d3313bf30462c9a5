"""The ledger of finished runs: what a run's key is, and how runs go to and from files."""
