"""Find what a ranking shows, and what it leaves open."""

from collections.abc import Iterable

import pandas as pd

from evalkit.compare.discordance import discordant_of, examples
from evalkit.compare.ranks import MOST_NAMED, Leaderboard, headline
from evalkit.kinds import Example, Finding, examples_of
from evalkit.kinds.findings import alike, doubts, files_of
from evalkit.kinds.models import UNKNOWN

RANKING, PAIRS = "Which model is best?", "Every pair on the tasks it shares"

FIRST = ("conditions_differ",)  # notes to read before any estimate stands beside another


def findings(
    board: Leaderboard,
    ledger: pd.DataFrame | None = None,
    *,
    planned: Iterable[str] = (),
    ranking: str = RANKING,
    pairs: str = PAIRS,
) -> list[Finding]:
    """Describe which model is best as far as the data show, what is open, what would decide it, and caveats.

    Parameters
    ----------
    board : Leaderboard
    ledger : DataFrame, optional
        If given, the last finding says how many files were used.
    planned : iterable of str
        Tasks that were to be run; by default those that other models ran.
    ranking, pairs : str
        Headings of the sections that hold the ranking and the pairs.

    Returns
    -------
    list of Finding
        The most important first; conditions that differ stand before the ranking. A model is called best if every other
        one is decided to be worse than some model.
    """
    nearest, data = _nearest(board), board.outcomes
    sides = nearest[["model_a", "model_b"]].itertuples(index=False)
    opposite = tuple(example for pair in sides for example in examples(discordant_of(data, *pair)))
    named = board.table[board.table["estimate"].notna() & (board.table["model_name"] != UNKNOWN)]
    first = {
        "headline": headline(board),
        "n_models": len(named),
        "title": data.title,
        "is_share": data.is_share,
        "unit": data.unit,
        "rates": named.head(MOST_NAMED).to_dict("records") if len(named) > 1 else [],
        "more": len(named) > MOST_NAMED,
    }
    results = [Finding("conditions", ranking, {"notes": before})] if (before := board.notes.only(*FIRST)) else []
    doubtful = doubts(data, planned)
    results.append(Finding("ranking", ranking, first, _extremes(board)))
    results += [one for one in doubtful if one.code == "variants"]
    if len(board.pairs):
        counts = {"decided": int(board.pairs["decided"].sum()), "pairs": len(board.pairs)}
        results.append(
            Finding("nearest_pair", pairs, {**counts, "row": next(iter(nearest.to_dict("records")), None)}, opposite)
        )
    elif len(board.table) == 1:
        results.append(Finding("alone", pairs))
    results += [one for one in doubtful if one.code != "variants"]
    if (others := board.notes.without(*FIRST, "variants")) and len(board.table) > 1:
        results.append(Finding("caveats", ranking, {"notes": others}))
    if ledger is not None:
        names = alike(board.table["model_name"])
        results.append(Finding("files", "Data quality", {"files": files_of(ledger), "names": names}))
    return results


def _nearest(board: Leaderboard) -> pd.DataFrame:
    """Return the pair of the first model that is nearest to a decision: an open one, if there is any."""
    pairs = board.pairs
    first = [name for name in board.table["model_name"] if name != UNKNOWN][:1]
    near = pairs[pairs["model_a"].isin(first) | pairs["model_b"].isin(first)]
    undecided = near[~near["decided"] & near["p_adjusted"].notna()]
    taken = undecided if len(undecided) else near
    return taken.sort_values("p_adjusted", ascending=bool(len(undecided))).head(1)


def _extremes(board: Leaderboard) -> tuple[Example, ...]:
    """Return the highest and the lowest of the first model's runs."""
    first = board.table["model_name"].iloc[0] if len(board.table) else ""
    rows = board.outcomes.table
    rows = rows[rows["model_name"].eq(first) & rows["value"].notna()]
    values, unit = rows["value"], f" {board.outcomes.unit}".rstrip()
    if values.nunique() < 2:
        return examples_of(rows, {f"a run of {first}": values.notna()})
    ends = {"highest": values.max(), "lowest": values.min()}
    return examples_of(rows, {f"{first}, {name}: {end:.3g}{unit}": values.eq(end) for name, end in ends.items()})
