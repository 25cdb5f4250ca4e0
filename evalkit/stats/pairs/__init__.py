"""Compare two models on the tasks they share, and all pairs of several models."""
