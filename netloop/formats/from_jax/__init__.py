"""JAX functions as networks: ``netloop.from_jax(function, *examples)`` traces one, and adds a network's layers."""

from netloop.formats.from_jax.convert import from_jax as from_jax
