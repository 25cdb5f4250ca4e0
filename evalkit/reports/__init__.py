"""Make batches of reports: execute notebooks with parameters, and write offline HTML pages and their index."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
