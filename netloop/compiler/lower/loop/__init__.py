"""Loops as ``jax.lax.scan`` and ``jax.lax.while_loop``; ``entry.py`` is where one begins."""
