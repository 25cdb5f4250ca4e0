"""Judging: checks of one result, of one step, and of a whole history."""
