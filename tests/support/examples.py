"""The number of examples of a property-based test, which depends on the profile of Hypothesis in use."""

import os

from hypothesis import settings

IS_NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
SCALE = 10 if IS_NIGHTLY else 1


def examples(number: int) -> settings:
    """Run a test on a number of examples, and on ten times as many in the nightly profile."""
    return settings(max_examples=number * SCALE)


def same_examples(number: int) -> settings:
    """Run a test on the same examples each time; on ten times as many random ones in the nightly profile."""
    return settings(examples(number), derandomize=not IS_NIGHTLY)
