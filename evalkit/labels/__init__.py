"""Labels that people give to runs or turns, and what they show of judges: draw, label, correct, compare."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
