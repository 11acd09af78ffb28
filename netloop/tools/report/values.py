"""The values of a run by iteration, and where NaN first appears."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from netloop.compiler.execution.probes import moment, positions
from netloop.model.check import require_valid
from netloop.model.graph.tensor import ITensor
from netloop.model.network import INetworkDefinition
from netloop.model.reference import Trace
from netloop.tools.report.graph import Graph, text
from netloop.values.diagnostics import ExecutionError
from netloop.values.types import Array

MOST_ITERATIONS = 128
"""The most elements of a tensor that the page shows."""
MOST_CELLS = 32
"""The most numbers of an element in a heat map."""


def number(value: Any) -> float | str | None:
    """A number as JSON has it; NaN and infinities as text."""
    result = float(value)
    return float(f"{result:.6g}") if math.isfinite(result) else str(result)


def run_values(network: INetworkDefinition, trace: Trace, graph: Graph) -> dict[str, Any]:
    """The values of each layer by the index of its node, and the first in running order that is not finite."""
    values: dict[int, list[dict[str, Any]]] = {}
    scopes, block = require_valid(network)
    places = dict(positions(block))
    first: tuple[tuple[float, ...], dict[str, Any]] | None = None
    for layer in network.layers:
        shown: list[dict[str, Any]] = []
        for tensor in layer.outputs:
            elements = _elements(trace, tensor)
            if not elements:
                continue
            shown.append(_summary(tensor, trace[tensor].loops, elements))
            at = next((at for at, array in elements.items() if not _is_finite(array)), None)
            if at is None or tensor not in places:
                continue
            when = moment(places[tensor], dict(zip(scopes.chain_of(tensor), at, strict=True)))
            if first is None or when < first[0]:
                place = {"node": graph.of_layer[layer], "tensor": text(tensor.name), "trips": list(at)}
                first = when, place
        if shown:
            values[graph.of_layer[layer]] = shown
    error = text(str(trace.error), 2000) if trace.error else ""
    return {"nodes": values, "not_finite": first[1] if first else None, "error": error}


def _elements(trace: Trace, tensor: ITensor) -> dict[tuple[int, ...], Array]:
    """The first elements that the outputs needed, if they are arrays of numbers."""
    sequence = trace[tensor]
    sequence.computed = sequence.computed[:MOST_ITERATIONS]
    try:
        arrays = sequence.needed()
    except ExecutionError:
        return {}
    return {
        at: array for at, array in arrays.items() if isinstance(array, np.ndarray) and array.dtype.kind not in "OUST"
    }


def _wide(value: Array) -> Array:
    return value.astype(np.float64).ravel()


def _is_finite(value: Array) -> bool:
    return bool(np.isfinite(_wide(value)).all())


def _summary(tensor: ITensor, loops: Sequence[str], elements: Mapping[tuple[int, ...], Array]) -> dict[str, Any]:
    rows = [_wide(array) for array in elements.values()]
    parts = [row[np.isfinite(row)] for row in rows]
    return {
        "tensor": text(tensor.name),
        "loops": [text(loop) for loop in loops],
        "trips": [list(at) for at in elements],
        "min": [number(part.min()) if part.size else None for part in parts],
        "mean": [number(part.mean()) if part.size else None for part in parts],
        "max": [number(part.max()) if part.size else None for part in parts],
        "nan": [int(row.size - part.size) for row, part in zip(rows, parts, strict=True)],
        "cells": [[number(value) for value in row[:MOST_CELLS]] for row in rows],
        "size": rows[0].size,
    }
