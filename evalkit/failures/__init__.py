"""Analyse why runs fail: events in transcripts, failure modes, and differences between failed and successful runs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
