"""What is minimised and what is graded: arrays in, numbers out."""
