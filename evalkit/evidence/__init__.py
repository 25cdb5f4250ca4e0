"""Show the evidence for numbers: pages of single runs, pages of two runs side by side, and links to them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
