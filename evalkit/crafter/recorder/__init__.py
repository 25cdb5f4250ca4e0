"""Play the real game and write session traces of it (extra ``crafter``)."""

from evalkit.crafter.recorder.session import Observations, Recorder, make_env

__all__ = ["Observations", "Recorder", "make_env"]
