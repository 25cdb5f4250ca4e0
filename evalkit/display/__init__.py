"""Display functions for notebooks: figures with alt text, tables, log text, headlines and provenance."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
