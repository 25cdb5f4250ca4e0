import subprocess
import sys

import pytest

import evalkit.stats


@pytest.mark.parametrize("name", evalkit.stats.__all__)
def test_every_public_name_is_there_and_documented(name):
    assert getattr(evalkit.stats, name).__doc__.strip()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'anova'"):
        _ = evalkit.stats.anova


def test_importing_the_package_loads_no_heavy_module():
    code = "import sys, evalkit.stats; print(sorted({'pandas', 'scipy', 'statsmodels', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
