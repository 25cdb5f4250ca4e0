"""Trajectories of agents: Harbor, inspect_ai, tau2-bench, SWE-agent, and tables of runs."""

from evalkit.trajectories.kind import KIND, load

__all__ = ["KIND", "load"]
