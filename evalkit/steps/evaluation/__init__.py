"""Evaluate results, steps and whole histories by checks."""
