"""Assemble runs: their folders, their models, their combined logs, their rows in the frames."""
