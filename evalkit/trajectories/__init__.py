"""Trajectories of agents: Harbor, inspect_ai, tau2-bench, SWE-agent, and tables of runs."""

from evalkit._lazy import door

_PLACES = {"kind": "KIND load collect runs_df"}

__getattr__, __dir__, __all__ = door(__name__, _PLACES, ["analysis", "figures"])
