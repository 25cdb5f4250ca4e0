"""Normalise histories: values, records, and the contents of stored results."""
