"""Loops as ``jax.lax`` control flow."""
