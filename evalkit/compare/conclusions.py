"""Describe in sentences what a ranking shows, and what it leaves open."""

import pandas as pd

from evalkit.compare.discordance import discordant_of, examples
from evalkit.compare.ranks import MOST_NAMED, RAW, Leaderboard, headline
from evalkit.kinds import Example, Finding, counted_noun, examples_of
from evalkit.kinds.findings import files_text
from evalkit.kinds.models import UNKNOWN
from evalkit.stats import format_interval

RANKING, PAIRS = "Which model is best?", "Every pair on the tasks it shares"


def findings(
    board: Leaderboard, ledger: pd.DataFrame | None = None, *, ranking: str = RANKING, pairs: str = PAIRS
) -> list[Finding]:
    """Describe which model is best as far as the data show, what is open, what would decide it, and caveats.

    Parameters
    ----------
    board : Leaderboard
    ledger : DataFrame, optional
        If given, the last finding says how many files were used.
    ranking, pairs : str
        Headings of the sections that hold the ranking and the pairs.

    Returns
    -------
    list of Finding
        One to four. A model is called best if every other one is decided to be worse than some model.
    """
    nearest = _nearest(board)
    sides = nearest[["model_a", "model_b"]].itertuples(index=False)
    opposite = tuple(example for pair in sides for example in examples(discordant_of(board.outcomes, *pair)))
    results = [Finding(_first(board), ranking, _extremes(board))]
    if sentence := _pair(board, nearest):
        results.append(Finding(sentence, pairs, opposite))
    if board.notes and len(board.table) > 1:
        results.append(Finding(" ".join(_sentence(note) for note in board.notes), ranking))
    if ledger is not None:
        results.append(Finding(_sentence(files_text(ledger)), "Data quality"))
    return results


def _first(board: Leaderboard) -> str:
    first, is_share = headline(board), board.outcomes.is_share
    label = str(first["label"])
    if pd.isna(first.get("estimate", float("nan"))):
        return f"{_sentence(label)}{_rates(board)}"
    value = format_interval(first["estimate"], first["low"], first["high"], percent=is_share)
    value = value if is_share else f"{value} {board.outcomes.unit}"
    size = f"{counted_noun(int(first['n']), 'run')} of {counted_noun(int(first['n_clusters']), 'task')}"
    if not label.startswith("best: "):
        return f"{_capital(label)}: {value} ({size})."
    model, _, what = label.removeprefix("best: ").partition(" (")
    picked = " The estimate is corrected for picking the best." if board.basis == RAW else ""
    best = f"{model} is shown to be the best of {len(board.table)} models: {what.rstrip(')')} {value} ({size})."
    return f"{best}{picked}"


def _rates(board: Leaderboard) -> str:
    """List the estimates of the first models, if there are several."""
    table = board.table[board.table["estimate"].notna() & (board.table["model_name"] != UNKNOWN)]
    if len(table) < 2:
        return ""
    shown = table.head(MOST_NAMED)[["model_name", "estimate", "low", "high"]].itertuples(index=False)
    rates = (f"{name} {format_interval(*interval, percent=board.outcomes.is_share)}" for name, *interval in shown)
    return f" {_capital(board.outcomes.title)}: {', '.join(rates)}{' …' if len(table) > MOST_NAMED else ''}."


def _pair(board: Leaderboard, nearest: pd.DataFrame) -> str:
    """Describe how many pairs are decided, and what would decide the nearest open one of the first model."""
    pairs = board.pairs
    if pairs.empty:
        return "There is one model only, so nothing is compared." if len(board.table) == 1 else ""
    decided = int(pairs["decided"].sum())
    count = f"{decided} of {counted_noun(len(pairs), 'pair')} {'is' if decided == 1 else 'are'} decided. "
    return f"{count if len(pairs) > 1 else ''}{''.join(nearest['sentence'])}".strip()


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


def _sentence(text: str) -> str:
    return f"{_capital(text.rstrip('.'))}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
