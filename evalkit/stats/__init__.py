"""Estimates with intervals and honest comparisons; knows nothing of logs."""
