"""What a training gives: Result, the bundle that keeps it, and `fit`, which trains one."""
