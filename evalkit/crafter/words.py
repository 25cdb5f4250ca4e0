"""Write the sentences of findings and warnings that only Crafter traces have; they are the templates of `Finding`."""

from collections.abc import Mapping

from evalkit._text import counted_noun

# texts of warnings, by code: about scores, and about unlocked achievements
SCORES = {"no_values": "no trace has a score", "left_out": "left out: {count} aborted"}
UNLOCKS = {
    "no_values": "no trace records unlocked achievements",
    "left_out": "left out: {count} without a record of unlocked achievements",
}


def points(n: int, bands: Mapping[str, int], earned: float, lost: float) -> str:
    """Describe the number of episodes in each band of scores, and the points earned and lost."""
    counts = ", ".join(f"{count} {name}" for name, count in bands.items())
    return f"{counted_noun(n, 'episode')}: {counts}; {earned:.2f} points earned, {lost:.2f} lost to invalid actions."
