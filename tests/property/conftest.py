"""How many examples: few in every test run, many with ``--hypothesis-profile=long``."""

from hypothesis import settings

settings.register_profile("quick", max_examples=50, deadline=None)
settings.register_profile("long", max_examples=5_000, deadline=None)
settings.load_profile("quick")
