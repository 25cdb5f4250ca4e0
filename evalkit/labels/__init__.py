"""Label runs or turns by hand, and evaluate judges with the labels: draw, label, correct, compare."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
