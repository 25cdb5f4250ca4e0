"""Turn raw logs of LLM agents into trustworthy tables, figures and HTML reports.

The names in ``__all__`` are imported on first use, so that ``import evalkit`` and ``evalkit --help`` stay fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
