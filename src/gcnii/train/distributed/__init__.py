"""One graph over several processes, started by torchrun: each has some of the nodes, exactly."""
