"""Analyse trajectories of agents: Harbor, inspect_ai, tau2-bench, lm-eval, OpenHands, SWE-agent and tables of runs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
