"""The style of figures: tones for light and dark pages, and for every series a colour with further cues.

Figures are created without pyplot, so that they don't depend on a notebook's plotting backend and none stays open.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import wraps
from itertools import count
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar, cast

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from evalkit.io import distinct_names, plain

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Name of a tone: its colour on light pages, which is what figures are drawn in, and on dark ones. Series 1 to 7 are
# those of Okabe and Ito, "Color Universal Design" (2008), without the yellow that is too pale on white.
TONES = {
    "ground": ("#ffffff", "#15181c"),
    "ink": ("#30343b", "#dfe3e8"),
    "quiet": ("#5b616b", "#a3abb5"),
    "edge": ("#8a8f98", "#79818c"),
    "pale": ("#c9ced6", "#4a515c"),
    "grid": ("#e4e7eb", "#2b3038"),
    "shade": ("#f3f4f6", "#1f2329"),
    "series-1": ("#0072b2", "#4c9fe0"),
    "series-2": ("#d55e00", "#ee7a33"),
    "series-3": ("#009e73", "#2fbf95"),
    "series-4": ("#cc79a7", "#db93bb"),
    "series-5": ("#56b4e9", "#a8dcf9"),
    "series-6": ("#e69f00", "#f0c040"),
    "series-7": ("#595959", "#7d828a"),
    "series-8": ("#4a2fc4", "#7b6cff"),
}
GROUND, INK, QUIET, EDGE, PALE, GRID, SHADE = (light for light, _ in list(TONES.values())[:7])
PALETTE = tuple(light for name, (light, _) in TONES.items() if name.startswith("series"))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h", "p")
HATCHES = ("", "//", ".", "xx", "--", "\\\\", "++", "||")
DASHES = ((), (4, 1.5), (1, 1.2))

THEME: Any = {
    "axes.edgecolor": EDGE,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelcolor": INK,
    "axes.prop_cycle": mpl.cycler(color=PALETTE),  # type: ignore[attr-defined]  # the types of matplotlib lack it
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "figure.facecolor": GROUND,
    "font.size": 10.5,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "hatch.color": GROUND,
    "hatch.linewidth": 0.8,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "text.color": INK,
    "text.parse_math": False,  # names come from logs: a dollar sign is a dollar sign
    "xtick.color": INK,
    "ytick.color": INK,
}
_THEMED, _NOTHING = "evalkit", "nothing-to-draw"  # gids of figures in the theme, and of empty axes
_kept: dict[Hashable, int] = {}  # names with a look of their own in all figures, and its place


class Look(NamedTuple):
    """What distinguishes one series from the others: its colour, and cues that work without colours."""

    colour: str
    marker: str = "o"
    hatch: str = ""
    dashes: tuple[float, ...] = ()
    text: str = ""


def new_figure(width: float = 7.0, height: float = 3.6) -> Figure:
    """Create an empty figure in evalkit's theme; sizes in inches."""
    with mpl.rc_context(THEME):
        figure = Figure(figsize=(width, height), layout="constrained")
    figure.set_gid(_THEMED)
    return figure


def new_axes(width: float = 7.0, height: float = 3.6, **subplots: Any) -> Any:
    """Create axes on a new figure in evalkit's theme, sizes in inches; an array of them if `subplots` names rows or
    columns, as for ``Figure.subplots``.
    """
    with mpl.rc_context(THEME):
        return new_figure(width, height).subplots(**subplots)


def dark_rules(svg: str) -> str:
    """Write the style rules that give the tones used in an SVG their dark colours; white words stay white."""
    rules = [f".themed{{fill:{TONES['ink'][1]}}}"]  # what has no colour is black, which is ink
    for attribute in ("fill", "stroke"):
        for light, dark in [*TONES.values(), ("#000000", TONES["ink"][1])]:
            if (own := f'{attribute}="{light}"') in svg:
                within = ":not(text)" if light == GROUND else ""
                rules.append(f".themed {within}[{own}]{{{attribute}:{dark}}}")
    return "".join(rules)


def is_themed(figure: Figure) -> bool:
    """Return whether a figure was created by `new_figure`, so that its tones may follow the page's."""
    return figure.get_gid() == _THEMED


def themed(draw: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function to draw in evalkit's theme, whatever the current settings."""

    @wraps(draw)
    def drawn(*args: _P.args, **options: _P.kwargs) -> _R:
        with mpl.rc_context(THEME):
            return draw(*args, **options)

    return drawn


@themed
def nothing_to_draw(what: str = "runs", ax: Axes | None = None) -> Axes:
    """Write on empty axes that there are no runs (episodes, steps) of this kind."""
    ax = ax or new_axes(7, 1.0)
    ax.text(0.5, 0.5, f"no {what} of this kind", ha="center", va="center", color=QUIET, transform=ax.transAxes)
    ax.set_axis_off()
    ax.set_gid(_NOTHING)
    return ax


def has_nothing_to_draw(figure: Figure) -> bool:
    """Return whether all axes of a figure are those of `nothing_to_draw`."""
    return bool(figure.axes) and all(ax.get_gid() == _NOTHING for ax in figure.axes)


def keep_looks(names: Iterable[Hashable]) -> None:
    """Give each of these names one look in all figures from now on, by its place among them."""
    _kept.clear()
    _kept.update({name: i for i, name in enumerate(dict.fromkeys(names))})


def looks(names: Iterable[Hashable]) -> dict[Any, Look]:
    """Assign a look to every name: that of `keep_looks`, else the same ones for the same list of names.

    Up to 8 names differ in colour, 12 in marker and 8 in hatch, 24 in colour and line, 96 in colour and marker.
    """
    out, names = {}, list(dict.fromkeys(names))
    others = count(len(_kept) if any(name in _kept for name in names) else 0)
    for name in names:
        i = _kept[name] if name in _kept else next(others)
        marker = MARKERS[(i + i // 24) % len(MARKERS)]  # once all pairs with a colour are used up, markers shift by one
        dashes = DASHES[i // len(PALETTE) % len(DASHES)]
        out[name] = Look(PALETTE[i % len(PALETTE)], marker, HATCHES[i % len(HATCHES)], dashes)
    return out


def labels(names: Sequence[object], width: int = 32) -> list[str]:
    """Return names from logs as labels of about `width` characters, cut in their middle; others differ."""
    texts = [plain(name) for name in names]
    shown = distinct_names(texts, width)
    return [shown[text] for text in texts]


def percent_axis(ax: Axes, which: Literal["x", "y"] = "x") -> Axes:
    """Format one axis of shares from 0 to 1 as percentages from 0 to 100."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    (ax.set_xlim if which == "x" else ax.set_ylim)(-0.02, 1.02)
    return ax


def figure_of(ax: Axes) -> Figure:
    """Return the root figure of axes."""
    return cast(Figure, ax.get_figure(root=True))
