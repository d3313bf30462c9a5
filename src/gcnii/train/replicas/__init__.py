"""Many runs at once: r seeds as one stack of weights, trained epoch by epoch."""
