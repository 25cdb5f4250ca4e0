"""Engines: how a notebook is executed, in a Jupyter kernel or a forked process, and what comes out of it."""
