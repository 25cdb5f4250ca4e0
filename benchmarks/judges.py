"""Measure how often corrected rates cover the truth, and how wide they are; write the tables of docs/judges.md.

    python -m benchmarks.judges                          # prints the tables; takes some 5 minutes of one core
    python -m benchmarks.judges --output docs/judges.md

The true rate is known: every unit has a label and a verdict of the judge. The function sees all verdicts, but only a
random part of the labels.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
import pandas as pd
from tabulate import tabulate

from benchmarks.simulate import publish
from evalkit.stats import corrected_rate
from evalkit.stats.intervals import quantile, wilson

MARK = "<!-- what follows is written by benchmarks/judges.py -->"
RATES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)  # higher rates are symmetric: swap yes and no
KNOWN = (0.0, 0.3, 0.8, 1.0)  # sensitivities and specificities of judges
SIZES = (50, 100, 200)
LABELS_OF = {100: (20, 50), 300: SIZES, 1_000: (20, *SIZES), 2_000: (50, 400), 5_000: SIZES}  # by units
GOOD = 0.8  # minimum sensitivity and specificity of a good judge

Rng = np.random.Generator


class World(NamedTuple):
    """All units: their labels, a judge's verdicts, and their clusters."""

    labels: np.ndarray
    verdicts: np.ndarray
    clusters: np.ndarray | None = None


class Measured(NamedTuple):
    """How often intervals cover the rate over all units, and their width relative to intervals from labels alone."""

    covered: float
    width: float
    textbook: float  # coverage of textbook PPI with a normal interval
    alone: float  # coverage of Wilson's interval from labels alone


def world(units: int, rate: float, sensitivity: float, specificity: float) -> World:
    """Make units with exactly these rates."""
    failures = round(units * rate)
    labels = (np.arange(units) < failures).astype(float)
    hits, alarms = round(failures * sensitivity), round((units - failures) * (1 - specificity))
    place = np.arange(units)
    verdicts = (place < hits) | ((place >= failures) & (place < failures + alarms))
    return World(labels, verdicts.astype(float))


def clustered(count: int, rate: float, correlation: float, rng: Rng) -> World:
    """Make clusters of 1 to 40 units. Labels, and errors of the judge, are correlated within clusters."""
    clusters = np.repeat(np.arange(count), rng.integers(1, 41, count))
    spread = 1 / correlation - 1
    chances = rng.beta(rate * spread, (1 - rate) * spread, count)[clusters]
    labels = (rng.random(len(clusters)) < chances).astype(float)
    right = rng.beta(0.8 * spread, 0.2 * spread, count)[clusters]
    verdicts = np.where(rng.random(len(clusters)) < right, labels, 1 - labels)
    return World(labels, verdicts, clusters)


def scored(units: int, rate: float, kind: str, rng: Rng) -> World:
    """Make units with scores of a judge instead of verdicts."""
    labels = (np.arange(units) < round(units * rate)).astype(float)
    draws = {
        "from 1 to 10": np.clip(np.round(4 + 4 * labels + 2 * rng.normal(size=units)), 1, 10),
        "log-normal": np.exp(2 * rng.normal(size=units) + 2 * labels),
        "of chance": rng.random(units),
        "from 0 to 1, rounded": np.round(rng.beta(1 + 2 * labels, 3 - 2 * labels), 1),
        "of a few failures": np.where(rng.random(units) < 0.3, labels, 0) * rng.random(units),
    }
    return World(labels, draws[kind])


def of_models(units: int, rng: Rng) -> World:
    """Make the runs of three models, the clusters, which differ in their rates and in the errors of the judge."""
    model = np.arange(units) % 3
    rate, sensitivity, false_alarms = rng.uniform((0.1, 0.3, 0.0), (0.9, 1.0, 0.7), (3, 3)).T
    labels = (rng.random(units) < rate[model]).astype(float)
    chances = np.where(labels > 0, sensitivity[model], false_alarms[model])
    return World(labels, (rng.random(units) < chances).astype(float), model)


def measure(data: World, drawn: Iterator[np.ndarray]) -> Measured:
    """Estimate the rate from each of several sets of labelled units."""
    covered, textbook = [], []
    alone, widths = [], []
    truth = data.labels.mean()
    for labelled in drawn:
        is_labelled = np.zeros(len(data.labels), dtype=bool)
        is_labelled[labelled] = True
        labels = data.labels[is_labelled]
        judged, rest = data.verdicts[is_labelled], data.verdicts[~is_labelled]
        clusters = data.clusters
        if clusters is not None:
            clusters = np.concatenate([clusters[is_labelled], clusters[~is_labelled]])
        found = corrected_rate(labels, judged, rest, clusters)
        low, high = wilson(labels.mean(), len(labels))
        covered.append(found.low - 1e-9 <= truth <= found.high + 1e-9)
        alone.append(low - 1e-9 <= truth <= high + 1e-9)
        widths.append((found.high - found.low, high - low))
        plain = rest.mean() + (labels - judged).mean()
        error = np.sqrt(rest.var() / len(rest) + (labels - judged).var() / len(labels))
        textbook.append(abs(plain - truth) <= quantile() * error)
    ours, labels_alone = np.mean(widths, axis=0)
    return Measured(*map(float, (np.mean(covered), ours / labels_alone, np.mean(textbook), np.mean(alone))))


def at_random(units: int, n: int, samples: int, rng: Rng) -> Iterator[np.ndarray]:
    """Draw units to label, all with the same probability."""
    for _ in range(samples):
        yield rng.permutation(units)[:n]


def shares_of(clusters: np.ndarray, n: int, samples: int, rng: Rng) -> Iterator[np.ndarray]:
    """Draw units to label in proportion to the size of each cluster, as `evalkit label` does for models."""
    for _ in range(samples):
        order = rng.permutation(len(clusters))
        place = pd.Series(clusters[order]).groupby(clusters[order]).cumcount() / np.bincount(clusters)[clusters[order]]
        yield order[np.argsort(place, kind="stable")[:n]]


def whole_clusters(clusters: np.ndarray, count: int, samples: int, rng: Rng) -> Iterator[np.ndarray]:
    """Draw clusters, and label all of their units."""
    for _ in range(samples):
        yield np.flatnonzero(np.isin(clusters, rng.permutation(clusters.max() + 1)[:count]))


def unequal(chances: np.ndarray, n: int, samples: int, rng: Rng) -> Iterator[np.ndarray]:
    """Draw units to label with unequal probabilities."""
    for _ in range(samples):
        yield rng.choice(len(chances), n, replace=False, p=chances / chances.sum())


def judges_table(samples: int, rng: Rng) -> str:
    """Measure judges of any quality, by the numbers of labels and units."""
    rows = []
    for units, n in ((units, n) for units, sizes in LABELS_OF.items() for n in sizes):
        cells = []
        for rate, sensitivity, specificity in product(RATES, KNOWN, KNOWN):
            data = world(units, rate, sensitivity, specificity)
            found = measure(data, at_random(units, n, samples, rng))
            is_good = min(sensitivity, specificity) >= GOOD and rate >= 0.1
            cells.append({**found._asdict(), "is_good": is_good})
        table = pd.DataFrame(cells)
        rows.append({
            "units": f"{units:,}",
            "labels": n,
            "covered, %": _percent(table["covered"].mean()),
            "worst judge": _percent(table["covered"].min()),
            "Wilson on labels alone": _percent(table["alone"].mean()),
            "textbook PPI": _percent(table["textbook"].mean()),
            "its worst": _percent(table["textbook"].min()),
            "width against labels alone": f"{table['width'].mean():.2f}",
            "widest": f"{table['width'].max():.2f}",
            "of good judges": f"{table.loc[table['is_good'], 'width'].mean():.2f}",
        })  # fmt: skip
    return tabulate(rows, "keys", "github", disable_numparse=True)


def hard_worlds(samples: int, rng: Rng) -> str:
    """Measure difficult cases: rare failures, judges with one-sided errors, constant judges, scores, clusters."""
    rows = []

    def add(name: str, cells: list[Measured]) -> None:
        covered = [cell.covered for cell in cells]
        rows.append({
            "world": name,
            "covered, %": _percent(float(np.mean(covered))),
            "worst": _percent(min(covered)),
            "textbook PPI": _percent(float(np.mean([cell.textbook for cell in cells]))),
            "width against labels alone": f"{np.mean([cell.width for cell in cells]):.2f}",
            "cells": len(cells),
        })  # fmt: skip

    def measured(name: str, judges: list[tuple[float, float]], rates: tuple[float, ...]) -> None:
        cells = []
        for rate, judge, n in product(rates, judges, SIZES):
            cells.append(measure(world(1_000, rate, *judge), at_random(1_000, n, samples, rng)))
        add(name, cells)

    measured("failures are rare: 1 or 2 %", [(0.5, 0.98), (0.9, 0.9), (1.0, 0.99)], (0.01, 0.02))
    measured("the judge misses failures, raises no false alarm", [(0.1, 1.0), (0.5, 1.0), (0.9, 1.0)], RATES)
    measured("the judge raises false alarms, misses none", [(1.0, 0.2), (1.0, 0.6), (1.0, 0.95)], RATES)
    measured("always, and never", [(1.0, 0.0), (0.0, 1.0)], RATES)
    measured("the judge gives the opposite answer", [(0.0, 0.0), (0.1, 0.2)], RATES)
    for kind in ("from 1 to 10", "from 0 to 1, rounded", "log-normal", "of chance", "of a few failures"):
        cells = []
        for rate, n in product(RATES, SIZES):
            cells.append(measure(scored(1_000, rate, kind, rng), at_random(1_000, n, samples, rng)))
        add(f"scores {kind}", cells)
    cells = []
    for units, n, _ in product((150, 1_000), (50, 100), range(6)):
        data = of_models(units, rng)
        cells.append(measure(data._replace(clusters=None), shares_of(data.clusters, n, samples, rng)))
    add("three models, judged differently; each has its share", cells)
    for design, rates in {
        "units drawn": (0.05, 0.3, 0.5, 0.9),
        "whole clusters drawn": (0.05, 0.3, 0.5, 0.9),
        "whole clusters drawn, failures are rare": (0.01, 0.02),
    }.items():
        cells = []
        for rate, correlation, share in product(rates, (0.1, 0.4, 0.8), (0.1, 0.3)):
            data = clustered(150, rate, correlation, rng)
            if design == "units drawn":
                drawn = at_random(len(data.labels), int(share * len(data.labels)), samples, rng)
            else:
                drawn = whole_clusters(data.clusters, int(share * 150), samples, rng)
            cells.append(measure(data, drawn))
        add(f"150 clusters of 1 to 40 units, {design}", cells)
    return tabulate(rows, "keys", "github", disable_numparse=True)


def not_at_random(samples: int, rng: Rng) -> str:
    """Measure the effect of labels that were not drawn at random."""
    rows = []
    ease = rng.random(1_000)
    labels = (rng.random(1_000) < 0.8 * (1 - ease)).astype(float)
    verdicts = np.where(rng.random(1_000) < 0.55 + 0.45 * ease, labels, 1 - labels)  # worse on hard units
    data = World(labels, verdicts)
    for name, chances in {
        "at random": np.ones(1_000),
        "twice as often where the judge answered failure": 1 + verdicts,
        "only where the judge answered failure": np.where(verdicts > 0, 1.0, 1e-12),
        "failures twice as often, as people recall them": 1 + labels,
        "easy runs, as they are short to read": ease**2,
    }.items():
        found = measure(data, unequal(chances, 100, samples, rng))
        rows.append({
            "100 labels of 1,000 runs": name,
            "covered, %": _percent(found.covered),
            "labels alone": _percent(found.alone),
        })  # fmt: skip
    return tabulate(rows, "keys", "github", disable_numparse=True)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


@click.command(help=__doc__.splitlines()[0])
@click.option("--samples", default=400, show_default=True, help="Sets of labels of each cell.")
@click.option("--seed", default=24, show_default=True)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help=f"All text after {MARK} is replaced.")
def main(samples: int, seed: int, output: Path | None) -> None:
    """Measure coverage and widths, and write the tables."""
    rng = np.random.default_rng(seed)
    sections = [
        MARK,
        "### Judges of all kinds",
        judges_table(samples, rng),
        "### Hard worlds",
        hard_worlds(samples, rng),
        "### Labels that were not drawn at random",
        not_at_random(4 * samples, rng),
        f"{samples:,} sets of labels of each cell, {4 * samples:,} in the last table; seed {seed}.\n",
    ]
    publish("\n\n".join(sections), MARK, output)


if __name__ == "__main__":
    main()
