"""A bar for long work in a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(unit: str = "files") -> Iterator[Callable[[int, int], None]]:
    """Give a function of (done, total) that moves a bar on stderr; where that is no terminal nothing is written."""
    from tqdm import tqdm

    with tqdm(unit=f" {unit}", disable=None, leave=False) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress
