"""Render executed notebooks as HTML pages, and their index."""
