"""Kinds of log: the registry, detection, and operations that all kinds share."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
