"""Settings of all tests."""

import os

from hypothesis import HealthCheck, settings

# time limits of single examples say more about a busy machine than about the code
settings.register_profile("evalkit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("evalkit")

# what a test reads is parsed, not taken from the store of another test or of the user
os.environ.setdefault("EVALKIT_CACHE", "off")
