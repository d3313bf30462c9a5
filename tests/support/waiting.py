"""Wait for what other processes and threads do, however busy the machine is."""

import time

PATIENCE = 600  # seconds; whoever waits so long waits in vain


def wait_until(ready):
    """Wait until `ready()` is true, and return what it returned."""
    until = time.monotonic() + PATIENCE
    while not (found := ready()):
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)
    return found
