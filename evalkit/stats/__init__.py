"""Estimates with intervals and honest comparisons; independent of logs.

Impossible arguments, such as an unknown column, bounds that values exceed or outcomes other than
0 and 1 where a rate is asked for, raise a ValueError that says what is wrong.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
