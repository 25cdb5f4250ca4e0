import doctest
import re
from pathlib import Path

import pytest

from evalkit import stats

STATISTICS = Path(__file__).parents[2] / "docs" / "statistics.md"


def test_the_examples_of_the_page_on_statistics_give_what_they_show():
    blocks = re.findall(r"^```python\n(.*?)^```", STATISTICS.read_text(encoding="utf-8"), flags=re.S | re.M)
    text = "\n\n".join(blocks)
    examples = doctest.DocTestParser().get_doctest(text, {}, STATISTICS.name, str(STATISTICS), 0)
    assert len(examples.examples) > 30
    said = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples, out=said.append)
    assert not said, "".join(said)


@pytest.mark.parametrize("name", stats.__all__)
def test_every_public_name_exists_and_the_page_mentions_every_function(name):
    assert getattr(stats, name)
    assert f"`{name}" in STATISTICS.read_text(encoding="utf-8") or not name.islower()
