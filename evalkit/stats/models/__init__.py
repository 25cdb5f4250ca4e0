"""Several models at once: ranks, rates made comparable, success against cost."""
