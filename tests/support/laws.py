"""What every layer obeys: its type rule foretells its reference, and its lowering agrees with its reference."""

import re
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
import pytest

from netloop.diagnostics import LayerError
from netloop.graph.layer import Operation
from netloop.types import HALVES, TensorType

Arrays = tuple[np.ndarray | None, ...]


@dataclass(frozen=True)
class Case:
    """A layer with inputs, and the outputs that somebody else worked out, where that is known.

    Attributes:
        name: what it shows.
        layer: the layer, in no network.
        inputs: its inputs; None for one left out.
        expected: its outputs, from outside netloop.
        rtol: how far results may differ, relatively; 0 for integers.
    """

    name: str
    layer: Operation
    inputs: Arrays
    expected: Any = None
    rtol: float = 1e-6
    named: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{type(self.layer).__name__}: {self.name}"


def check_laws(case: Case) -> None:
    """Check all laws on one case."""
    check_infer_foretells_evaluate(case)
    check_lowering_agrees_with_reference(case)
    check_expected(case)


def check_infer_foretells_evaluate(case: Case) -> None:
    """The types that follow from types alone, and from types with some unknown lengths, fit the results."""
    results = _tuple(case.layer.evaluate(*case.inputs, **case.named))
    for types in (_types(case), _types(case, keep_values=False)):
        inferred = _tuple(case.layer.infer(*types))
        assert len(inferred) == len(results)
        for foretold, result in zip(inferred, results, strict=True):
            assert foretold.dtype == result.dtype
            assert len(foretold.shape) == result.ndim
            assert all(a in (-1, b) for a, b in zip(foretold.shape, result.shape, strict=True))
            assert foretold.value is None or np.array_equal(foretold.value, result)
    assert all(foretold.is_fixed for foretold in _tuple(case.layer.infer(*_types(case))))


def check_lowering_agrees_with_reference(case: Case) -> None:
    """The compiled layer gives the reference's result."""
    traced = [i for i, x in enumerate(case.inputs) if x is not None and i not in case.layer.SHAPE_INPUTS]

    def run(*arrays: Any) -> Any:
        inputs: list[Any] = list(case.inputs)
        for position, array in zip(traced, arrays, strict=True):
            inputs[position] = array
        return case.layer.lower(*inputs, **case.named)

    with jax.enable_x64(True):
        lowered = _tuple(jax.jit(run)(*(case.inputs[i] for i in traced)))
    reference = _tuple(case.layer.evaluate(*case.inputs, **case.named))
    for got, wanted in zip(lowered, reference, strict=True):
        assert got.dtype == wanted.dtype
        assert_close(np.asarray(got), wanted, case.rtol)


def check_expected(case: Case) -> None:
    """The reference gives what somebody else worked out."""
    if case.expected is None:
        return
    results = _tuple(case.layer.evaluate(*case.inputs, **case.named))
    for got, wanted in zip(results, _tuple(case.expected), strict=True):
        assert got.shape == np.shape(wanted)
        assert_close(got, np.asarray(wanted), case.rtol)


def assert_close(got: np.ndarray, wanted: np.ndarray, rtol: float) -> None:
    """Equal for integers and bools; within ``rtol``, and never nearer than the type's own steps, for the rest."""
    assert got.shape == wanted.shape
    if got.dtype in HALVES:
        got, wanted, rtol = got.astype(np.float32), wanted.astype(np.float32), max(rtol, 1e-2)
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, wanted)
    else:
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol)


def refuses(layer: Operation, *inputs: Any, match: str) -> None:
    """The type rule of a layer refuses inputs, given as arrays, types or None, with a message that says why."""
    types = [TensorType.of(x) if isinstance(x, np.ndarray) else x for x in inputs]
    with pytest.raises(LayerError, match=re.escape(match)):
        layer.infer(*types)


def _types(case: Case, keep_values: bool = True) -> list[TensorType | None]:
    types = [None if x is None else TensorType.of(x) for x in case.inputs]
    return types if keep_values else [None if t is None else t.without_value() for t in types]


def _tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)
