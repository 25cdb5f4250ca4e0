"""Study in detail the coverage of the intervals and error rates of the tests of evalkit.stats, at typical sample sizes.

    python -m benchmarks.studies --output FILE           # about an hour and a half
    python -m benchmarks.studies --quick                 # minutes, to the terminal
    python -m benchmarks.studies --only clusters --only pairs

Coverage of counts of independent trials is exact: summed over all outcomes. The rest is simulated with a fixed seed.
"""

import inspect
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from tabulate import tabulate

from benchmarks import error_rates, interval_studies, selection_studies
from benchmarks.simulate import publish

MARK = "<!-- what follows is written by benchmarks/studies.py -->"
QUICK, FULL = 100, 2_000


class Study(NamedTuple):
    """A study, and the column that its promise is judged by.

    The summary has the range of `value` over the rows with at least `least` in column `size` (without it, all rows).
    """

    name: str
    title: str
    run: Callable[[int, np.random.Generator], list[dict]]
    promise: str = ""
    value: Sequence[str] = ()
    size: str = ""
    least: int = 12


STUDIES = (
    Study("trials", "Rates of independent trials", interval_studies.proportions),
    Study(
        "clusters",
        "Rates of clusters, for new tasks",
        interval_studies.clustered,
        "93.5 to 96.5 from 12 clusters on",
        ("lowest to highest, by correlation",),
        "clusters",
    ),
    Study(
        "same tasks",
        "Rates of the same tasks, run again",
        interval_studies.same_tasks,
        "93.5 to 96.5 from 12 tasks on, or a warning",
        ("mean over rates",),
        "tasks",
    ),
    Study(
        "scores",
        "Means of scores from 0 to 1",
        interval_studies.scores,
        "93.5 to 96.5 from 12 clusters on",
        ("mean over means",),
        "clusters",
    ),
    Study(
        "means",
        "Means of values without bounds",
        interval_studies.means,
        "93.5 to 96.5 from 12 clusters on, or a warning",
        ("coverage",),
        "n or clusters",
    ),
    Study(
        "pass@k",
        "pass@k and pass^k",
        interval_studies.pass_k,
        "93.5 to 96.5 from 12 tasks on",
        ("pass@k", "pass^k"),
        "tasks",
    ),
    Study(
        "crafter",
        "Crafter: the official score over seeds",
        interval_studies.crafter_seeds,
        "93 to 97 for 3 to 20 seeds",
        ("3 seeds", "5 seeds", "10 seeds", "20 seeds"),
    ),
    Study("crafter pooled", "Crafter: pooled episodes", interval_studies.crafter_pooled),
    Study("bootstrap", "Bootstrap", interval_studies.bootstraps),
    Study(
        "mixes",
        "Standardised and adjusted rates",
        selection_studies.mixes,
    ),
    Study(
        "differences",
        "Paired differences",
        error_rates.differences,
        "93.5 to 96.5 from 12 tasks on",
        ("mean coverage",),
        "tasks",
    ),
    Study(
        "pairs",
        "All pairs of several models",
        error_rates.families,
        "errors of at most 5.5",
        ("error, max-T",),
    ),
    Study(
        "same task pairs",
        "Models on the same tasks, run again",
        error_rates.same_task_pairs,
        "errors of at most 5.5",
        ("error of 5 % allowed",),
    ),
    Study("margins", "Equivalence and non-inferiority", error_rates.margins),
    Study("ranks", "The first of several models, and ranks", selection_studies.ranking, "at least 95", ("corrected",)),
    Study(
        "trends",
        "Trends",
        error_rates.trends,
        "errors of at most 5",
        ("errors .5", "errors .15"),
    ),
    Study(
        "trial trends",
        "Trends of trials",
        error_rates.trial_trends,
        "errors of at most 5",
        ("errors 0.5", "errors 0.15"),
    ),
    Study(
        "sequences",
        "Confidence sequences",
        selection_studies.sequences,
        "missed in at most 5, at any look",
        ("missed at any look",),
    ),
    Study("power", "Power", error_rates.powers),
    Study("plans", "Plans", selection_studies.plans),
)


def summary(tables: dict[str, list[dict]]) -> list[dict]:
    """Return, for each study with a promise, the lowest and highest figure it is judged by."""
    rows = []
    for study in STUDIES:
        if study.name not in tables or not study.promise:
            continue
        used = [row for row in tables[study.name] if not study.size or int(row[study.size]) >= study.least]
        texts = [row[column] for row in used for column in study.value if row[column]]
        figures = [float(part) for text in texts for part in text.split(" to ")]
        if figures:
            rows.append(
                {
                    "study": study.title,
                    "promise, %": study.promise,
                    "lowest": f"{min(figures):.1f}",
                    "median": f"{np.median(figures):.1f}",
                    "highest": f"{max(figures):.1f}",
                }
            )
    return rows


@click.command(help=__doc__.splitlines()[0])
@click.option("--quick", is_flag=True, help=f"{QUICK} samples in place of {FULL:,}.")
@click.option("--seed", default=0, show_default=True)
@click.option(
    "--only", multiple=True, type=click.Choice([study.name for study in STUDIES]), help="A study; by default all."
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"A file, in which all text after {MARK} is replaced.",
)
def main(quick: bool, seed: int, only: tuple[str, ...], output: Path | None) -> None:
    """Run the studies, and write their tables."""
    samples, start, tables, sections = QUICK if quick else FULL, time.process_time(), {}, []
    for study in STUDIES:
        if only and study.name not in only:
            continue
        begun = time.process_time()
        tables[study.name] = study.run(samples, np.random.default_rng(seed))
        table = tabulate(tables[study.name], "keys", "github", disable_numparse=True)
        sections.append(f"## {study.title}\n\n{inspect.getdoc(study.run)}\n\n{table}")
        click.echo(f"{study.name}: {time.process_time() - begun:.0f} s", err=True)
    minutes = (time.process_time() - start) / 60
    promises = tabulate(summary(tables), "keys", "github", disable_numparse=True)
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "statsmodels"))
    text = "\n\n".join(
        [
            MARK,
            f"## Promises and what was found\n\n{promises}",
            *sections,
            f"Up to {samples:,} samples in each cell, fewer where a study says so or a sample takes long; seed {seed}; "
            f"{minutes:.0f} minutes of processor time; Python {sys.version.split()[0]}, {versions}.\n",
        ]
    )
    publish(text, MARK, output)


if __name__ == "__main__":
    main()
