"""The waits of the host for a device: whatever reads the values of an array of JAX, or waits for them."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

ARRAY: Any = type(jax.device_put(np.float32(0)))
FUNCTIONS = [(np, "asarray"), (np, "array"), (np, "ascontiguousarray"), (jax, "device_get"), (jax, "block_until_ready")]
METHODS = "_value", "block_until_ready", "item", "__array__"
"""What all conversions of an array to a number or to numpy's array call, but for those functions."""


def recorded_waits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list to which the name of each wait is added from now on."""
    waits, inside = list[str](), [False]

    def watched(name: str, wait: Callable[..., Any]) -> Callable[..., Any]:
        def call(value: Any, *arguments: Any, **options: Any) -> Any:
            if inside[0] or not any(isinstance(leaf, ARRAY) for leaf in jax.tree.leaves(value)):
                return wait(value, *arguments, **options)
            waits.append(name)
            inside[0] = True
            try:
                return wait(value, *arguments, **options)
            finally:
                inside[0] = False

        return call

    for module, name in FUNCTIONS:
        monkeypatch.setattr(module, name, watched(name, getattr(module, name)))
    for name in METHODS:
        method = getattr(ARRAY, name)
        is_property = isinstance(method, property)
        call = watched(name, method.fget if is_property else method)
        monkeypatch.setattr(ARRAY, name, property(call) if is_property else lambda *a, call=call, **o: call(*a, **o))
    return waits
