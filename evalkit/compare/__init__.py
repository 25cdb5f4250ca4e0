"""Compare models on runs of any kind: ranks, pairs, a baseline, reliability, plans and cost."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
