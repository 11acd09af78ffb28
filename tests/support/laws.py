"""The laws of every layer: its type rule predicts its reference, and its lowering agrees with its reference."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
import pytest

from netloop.model.graph.layer import Operation
from netloop.values.diagnostics import LayerError
from netloop.values.types import HALVES, TensorType
from tests.support.devices import tolerance

Arrays = tuple[np.ndarray | None, ...]

AT_A_TIME = 16
"""The number of cases that are compiled as one program; more gained nothing."""
_BATCHES: dict[int, list["Case"]] = {}
_LOWERED: dict[int, Any] = {}
"""The batch of each case and its outputs, by the case's id: cases of equal arrays do not compare."""


@dataclass(frozen=True)
class Case:
    """A layer with inputs and, where they are known, outputs worked out outside netloop.

    Attributes:
        name: the fact that it shows.
        layer: the layer, in no network.
        inputs: its inputs; None for an optional one that is absent.
        expected: its outputs, from outside netloop.
        rtol: how far results may differ on a CPU, relatively; 0 for integers.
    """

    name: str
    layer: Operation
    inputs: Arrays
    expected: Any = None
    rtol: float = 1e-6
    named: dict[str, Any] = field(default_factory=dict)

    def fresh_layer(self) -> Operation:
        """A copy of the layer, for a network to take."""
        made = object.__new__(type(self.layer))
        vars(made).update(vars(self.layer))
        return made

    def __str__(self) -> str:
        return f"{type(self.layer).__name__}: {self.name}"


def check_laws(case: Case) -> None:
    """Check all laws on one case."""
    check_infer_predicts_evaluate(case)
    check_lowering_agrees_with_reference(case)
    check_expected(case)


def check_infer_predicts_evaluate(case: Case) -> None:
    """The types inferred with and without the values of the inputs fit the results."""
    results = _tuple(case.layer.evaluate(*case.inputs, **case.named))
    for types in (_types(case), _types(case, keep_values=False)):
        inferred = _tuple(case.layer.infer(*types))
        assert len(inferred) == len(results)
        for predicted, result in zip(inferred, results, strict=True):
            assert isinstance(result, np.ndarray)
            assert predicted.dtype == result.dtype
            assert len(predicted.shape) == result.ndim
            assert all(a in (-1, b) for a, b in zip(predicted.shape, result.shape, strict=True))
            assert predicted.value is None or np.array_equal(predicted.value, result)
    assert all(predicted.is_fixed for predicted in _tuple(case.layer.infer(*_types(case))))


def check_lowering_agrees_with_reference(case: Case) -> None:
    """The compiled layer gives the reference's result."""
    lowered = _tuple(_lowered(case))
    reference = _tuple(case.layer.evaluate(*case.inputs, **case.named))
    for got, wanted in zip(lowered, reference, strict=True):
        assert got.dtype == wanted.dtype
        assert_close(np.asarray(got), wanted, tolerance(case.rtol, got.dtype))


def compile_together(cases: list[Case]) -> None:
    """Let the cases of a file be compiled as few programs, which takes XLA half the time of many small ones."""
    for begin in range(0, len(cases), AT_A_TIME):
        batch = cases[begin : begin + AT_A_TIME]
        _BATCHES.update((id(request), batch) for request in batch)


def _lowered(case: Case) -> Any:
    """The outputs of a compiled case; those of its whole batch are computed with it, unless one of them fails."""
    if id(case) not in _LOWERED:
        batch = _BATCHES.get(id(case), [case])
        for request in batch:
            _BATCHES.pop(id(request), None)
        try:
            found = _run(batch)
        except Exception:  # perhaps of another case: each then fails in its own test
            batch, found = [case], _run([case])
        _LOWERED.update((id(request), outputs) for request, outputs in zip(batch, found, strict=True))
    return _LOWERED.pop(id(case))


def _run(cases: list[Case]) -> list[Any]:
    """The outputs of cases, compiled as one program, with products of float32."""
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        function, arrays = lowered_together(cases)
        return jax.jit(function)(arrays)


def lowered_together(cases: list[Case]) -> tuple[Callable[[Any], list[Any]], Any]:
    """The function of the layers of cases, and its argument: their inputs that are not known when it is compiled."""
    arrays = [{position: case.inputs[position] for position in _traced(case)} for case in cases]
    return lambda inputs: [_lower(*entry) for entry in zip(cases, inputs, strict=True)], arrays


def _lower(case: Case, traced: dict[int, Any]) -> Any:
    inputs = [traced.get(position, array) for position, array in enumerate(case.inputs)]
    return case.layer.lower(*inputs, **case.named)


def _traced(case: Case) -> list[int]:
    """The inputs that are not known when the layer is compiled."""
    return [i for i, x in enumerate(case.inputs) if x is not None and i not in case.layer.SHAPE_INPUTS]


def check_expected(case: Case) -> None:
    """The reference gives the expected outputs."""
    if case.expected is None:
        return
    results = _tuple(case.layer.evaluate(*case.inputs, **case.named))
    for got, wanted in zip(results, _tuple(case.expected), strict=True):
        assert got.shape == np.shape(wanted)
        assert_close(got, np.asarray(wanted), case.rtol)


def assert_close(got: np.ndarray, wanted: np.ndarray, rtol: float) -> None:
    """Assert equality for integers and bools, closeness within ``rtol`` or the type's precision for the rest."""
    assert got.shape == wanted.shape
    if got.dtype in HALVES:
        got, wanted, rtol = got.astype(np.float32), wanted.astype(np.float32), max(rtol, 1e-2)
    if got.dtype.kind in "biuOT":
        np.testing.assert_array_equal(got, wanted)
    else:
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol)


def refuses(layer: Operation, *inputs: Any, match: str) -> None:
    """Assert that the type rule of a layer refuses inputs, given as arrays, types or None, with a message."""
    types = [TensorType.of(x) if isinstance(x, np.ndarray) else x for x in inputs]
    with pytest.raises(LayerError, match=re.escape(match)):
        layer.infer(*types)


def _types(case: Case, keep_values: bool = True) -> list[TensorType | None]:
    types = [None if x is None else TensorType.of(x) for x in case.inputs]
    return types if keep_values else [None if t is None else t.without_value() for t in types]


def _tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)
