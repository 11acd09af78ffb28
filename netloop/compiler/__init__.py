"""The way from a network to programs of XLA.

``passes`` make a network faster, ``lower`` translates it to ``jax.lax``, ``xla_compilation`` compiles it,
``execution`` calls it, ``host`` runs networks whose shapes only a run knows, ``tuning`` chooses variants by timing.
"""
