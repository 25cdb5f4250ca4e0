"""Settings of all tests."""

from hypothesis import HealthCheck, settings

collect_ignore = ["reports/data"]  # a notebook that tests make reports of

# time limits of single examples say more about a busy machine than about the code
settings.register_profile("evalkit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("evalkit")
