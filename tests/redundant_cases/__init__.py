"""Cases of parametrized tests that are slow because other cases reach all that they reach.

``listed.py`` reads and writes the list, by which ``conftest.py`` marks the cases as slow. ``python -m
tests.redundant_cases`` makes it anew: it runs the fast tests, listed cases included, with a plugin of pytest
(``reach.py``) that records the CPU time of each case and what it reaches, and chooses by that (``choice.py``).
"""
