"""Make batches of reports: papermill over a folder of parameter files, offline HTML pages, and their index."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
