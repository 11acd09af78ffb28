"""Networks and their meaning.

``graph``, ``layers`` and ``network`` are what a script builds; ``nest`` is its tree of loops and conditionals,
``check`` its rules, ``reference`` what it computes. ``plugins`` are layers that users write, ``formulas`` build layers
for importers and passes, ``plan`` and ``script`` save a network without loss.
"""
