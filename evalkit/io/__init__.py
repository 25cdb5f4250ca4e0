"""Input and output: list and read files, decode JSON, keep the ledger of files, and build tables from columns."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
