"""The page of JAX's primitives, for ``netloop operators jax``."""

from netloop.formats.from_jax.primitive_page import primitives_page as page

__all__ = ["page"]
