"""Keys of the sections of reports that findings of several kinds refer to.

In a notebook, the Markdown cell with the section's heading has the key in a tag, such as ``section:ranking``.
"""

RANKING = "ranking"
PAIRS = "pairs"
PLAN = "plan"
SUCCESS = "success"
ENDINGS = "endings"
MODES = "modes"
DATA_QUALITY = "data_quality"
CHECKS = "checks"
JUDGES = "judges"
