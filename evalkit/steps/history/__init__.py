"""Histories in one form: values, records, and what a stored result holds."""
