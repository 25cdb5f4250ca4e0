"""``python -m evalkit.crafter TRACES …`` is ``evalkit crafter TRACES …``."""

import sys

from evalkit.cli import main

if __name__ == "__main__":
    main(["crafter", *sys.argv[1:]], prog_name="evalkit")
