"""Steps of a plan-and-execute analysis agent: storing results, judging steps, the workflow, frames and figures."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
