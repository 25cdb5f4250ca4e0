"""Why runs fail: events found in transcripts, failure modes, and what differs between failed and successful runs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
