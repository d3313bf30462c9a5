"""Tables and figures of what the analysis found."""
