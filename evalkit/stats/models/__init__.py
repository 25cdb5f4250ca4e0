"""Compare several models at once: ranks, adjusted rates, success against cost."""
