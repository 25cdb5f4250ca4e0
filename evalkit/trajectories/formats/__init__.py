"""Readers of trajectories, one module per format, each with the functions `recognises`, `parse` and `messages`."""
