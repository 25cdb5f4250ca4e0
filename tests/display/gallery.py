"""Every shape of picture, of made-up data; ``python -m tests.display.gallery FOLDER`` writes them out to look at."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from evalkit.display import plots
from evalkit.display.drawing import EDGE, PALETTE, SHADE, Look, looks

KINDS = {
    "+": Look(PALETTE[2], "^", text="gains points"),
    "-": Look(PALETTE[1], "v", text="loses points"),
    "0": Look(EDGE, "o", text="cancels to zero"),
}
ENDINGS = {
    "success": Look(PALETTE[2], text="✓"),
    "failure": Look(PALETTE[1], text="F"),
    "not run": Look(SHADE, text="·"),
}


def names(stem: str, count: int) -> list[str]:
    """Make names that differ."""
    return [f"{stem} {i}" for i in range(count)]


def table(models: list[str], items: list[str]) -> pd.DataFrame:
    """Make estimates with intervals and n for every model and item."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame([(model, item) for model in models for item in items], columns=["model_name", "item"])
    rates = rng.random(len(frame))
    bounds = {"low": rates * 0.7, "high": rates + 0.3 * (1 - rates), "n": rng.integers(1, 2000, len(frame))}
    return frame.assign(estimate=rates, **bounds, place=frame.groupby("model_name").cumcount())


def counts(frame: pd.DataFrame) -> pd.DataFrame:
    """Make a row of counts per item of `table`, with a column per model."""
    return frame.pivot(index="item", columns="model_name", values="n").reset_index()


def shapes(models: list[str], items: list[str]) -> dict[str, Callable[[], Axes]]:
    """Give every shape of picture of so many models and items."""
    t = table(models, items)
    events = t.assign(kind=np.resize(list(KINDS), len(t)))
    differences = t.assign(estimate=t["estimate"] - 0.5, decided=t["estimate"] > 0.8)
    ended = t.assign(ended=np.resize(list(ENDINGS), len(t)))
    references = pd.DataFrame({"name": ["published"], "mean": [0.5], "spread": [0.1]})
    first, parts = t.drop_duplicates("item"), looks(models)
    means = t.groupby("model_name", sort=False).agg(estimate=("estimate", "mean"), n=("n", "size")).reset_index()
    return {
        "estimates": lambda: plots.estimates(first, "item", references=references, highlight=items[0]),
        "estimates by hue": lambda: plots.estimates(t, "item", "model_name"),
        "strips": lambda: plots.strips(t, "model_name", "estimate", means, percent=True),
        "shares": lambda: plots.shares(counts(t), "item", parts),
        "heatmap": lambda: plots.heatmap(t, "item", "model_name"),
        "differences": lambda: plots.heatmap(differences, "item", "model_name", signed=True, frame="decided"),
        "endings": lambda: plots.heatmap(ended, "item", "model_name", value="ended", kinds=ENDINGS),
        "curves": lambda: plots.curves(t, "place", "model_name"),
        "steps": lambda: plots.curves(t, "place", "model_name", steps=True, percent=False),
        "timeline": lambda: plots.timeline(events, "model_name", "place", "kind", KINDS, path=True),
        "panels": lambda: plots.facets(
            t,
            "model_name",
            lambda own, ax: plots.estimates(own, "item", ax=ax, order=items),
            height=1 + 0.2 * len(items),
        )[0],
        "curves in panels": lambda: plots.facets(
            t,
            "model_name",
            lambda own, ax: plots.curves(t, "place", "model_name", highlight=own["model_name"].iloc[0], ax=ax),
            ylabel="success rate, 95 % interval",
        )[0],
    }


def main(folder: str) -> None:
    """Write every shape as SVG, PNG and PDF."""
    from evalkit.display.drawing import draw

    for name, make in shapes(names("vendor/model", 5), names("item", 9)).items():
        drawing = draw(make().figure, name, pdf=True)
        path = Path(folder) / name.replace(" ", "-")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".svg").write_text(drawing.svg, "utf-8")
        path.with_suffix(".png").write_bytes(drawing.png)
        path.with_suffix(".pdf").write_bytes(drawing.pdf)


if __name__ == "__main__":
    main(sys.argv[1])
