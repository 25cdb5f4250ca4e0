"""Published results, with their sources."""

from typing import NamedTuple

import pandas as pd


class Reference(NamedTuple):
    """A published result; `spread` is the standard deviation over seeds for scores, the standard error for shares."""

    name: str
    kind: str  # "score" of a training run of 1,000,000 steps (human: of expert play), or "progression" of an LLM agent
    mean: float
    spread: float
    source: str


_HAFNER = "Hafner 2022, Benchmarking the Spectrum of Agent Capabilities, arXiv:2109.06780"
_MOON = "Moon et al. 2023, Discovering Hierarchical Achievements in RL via Contrastive Learning, arXiv:2307.03486"
_BALROG = "Paglieri et al. 2024, BALROG, arXiv:2411.13543 (n = 10)"

REFERENCES = (
    Reference("human", "score", 50.5, 6.8, _HAFNER),
    Reference("SPRING", "score", 27.3, 1.2, "Wu et al. 2023, SPRING, arXiv:2305.15486"),
    Reference("Achievement Distillation", "score", 21.8, 1.4, _MOON),
    Reference("Curious Replay", "score", 19.4, 1.6, "Kauvar et al. 2023, Curious Replay, arXiv:2306.15934"),
    Reference("PPO (ResNet)", "score", 15.6, 1.6, _MOON),
    Reference("DreamerV3", "score", 14.5, 1.6, "Hafner et al. 2023, Mastering Diverse Domains, arXiv:2301.04104"),
    Reference("DreamerV2", "score", 10.0, 1.2, _HAFNER),
    Reference("PPO", "score", 4.6, 0.3, _HAFNER),
    Reference("Rainbow", "score", 4.3, 0.2, _HAFNER),
    Reference("Plan2Explore", "score", 2.1, 0.1, _HAFNER),
    Reference("RND", "score", 2.0, 0.1, _HAFNER),
    Reference("random", "score", 1.6, 0.0, _HAFNER),
    Reference("GPT-4o", "progression", 33.1, 2.3, _BALROG),
    Reference("Claude-3.5-Sonnet", "progression", 32.7, 3.2, _BALROG),
    Reference("Llama-3.1-70B", "progression", 31.2, 2.7, _BALROG),
    Reference("GPT-4o-mini", "progression", 15.9, 2.1, _BALROG),
)


def reference_scores(kind: str = "") -> pd.DataFrame:
    """Return the published results, in percent; `kind` chooses ``score`` or ``progression``."""
    return pd.DataFrame([row for row in REFERENCES if kind in ("", row.kind)], columns=Reference._fields)
