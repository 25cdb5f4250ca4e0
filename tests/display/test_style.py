"""The look: names are plain text, series differ in two ways."""

import re
from pathlib import Path

import pytest
from seaborn.utils import relative_luminance

import evalkit
from evalkit.display import PALETTE, looks
from evalkit.display.drawing import TONES, dark_rules


def test_series_differ_in_colour_and_in_further_cues_also_beyond_the_palette():
    styles = list(looks([f"model {i}" for i in range(96)]).values())
    assert len({(look.colour, look.marker) for look in styles}) == 96
    assert len({look.marker for look in styles[:12]}) == 12
    assert len({look.colour for look in styles[:8]}) == len({look.hatch for look in styles[:8]}) == 8
    assert len({(look.colour, look.dashes) for look in styles[:24]}) == 24
    assert [look.colour for look in looks(["a", "b", "a"]).values()] == list(PALETTE[:2])


def _contrast(one: str, other: str) -> float:
    """Compute the contrast of two colours, after WCAG 2.1."""
    light = sorted((relative_luminance(one), relative_luminance(other)), reverse=True)
    return (light[0] + 0.05) / (light[1] + 0.05)


@pytest.mark.parametrize("scheme", [0, 1])
def test_words_and_marks_stand_out_from_the_ground(scheme):
    ground = TONES["ground"][scheme]
    contrasts = {name: _contrast(tones[scheme], ground) for name, tones in TONES.items()}
    assert min(contrasts["ink"], contrasts["quiet"]) > 4.5
    assert contrasts["edge"] > 3
    series = [contrast for name, contrast in contrasts.items() if name.startswith("series")]
    assert min(series) > 2.2  # Okabe and Ito's sky blue and orange on white; the markers' outlines help them


def test_pages_have_the_same_tones():
    style = (Path(evalkit.__file__).parent / "evidence/templates/style.css").read_text("utf-8")
    every = "".join(f'{part}="{light}"' for part in ("fill", "stroke") for light in [*dict(TONES.values()), "#000000"])
    rules = dark_rules(every).replace("}", "}\n").splitlines()
    assert len(rules) == 1 + 2 * (len(TONES) + 1)
    assert [rule for rule in rules if rule not in re.sub(r";| (?=\{)|(?<=\{) |(?<=:) | (?=\})", "", style)] == []
