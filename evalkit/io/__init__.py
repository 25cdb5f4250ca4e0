"""Input and output: listing and reading files, decoding JSON, the ledger of files, tables from columns."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
