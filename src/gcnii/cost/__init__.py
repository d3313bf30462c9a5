"""What a training takes before it is started: memory, time, and traffic between processes.

Nothing is imported here, so that a plan from counts alone does not wait for torch.
"""
