"""Settings of every test: nothing is kept in the user's store of parsed tables."""

import os

os.environ["EVALKIT_CACHE"] = "off"
