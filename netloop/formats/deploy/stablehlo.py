"""StableHLO: networks as programs of the compiler that JAX, and other systems, use."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import export

from netloop.compiler.execution.to_jax import PURE, NamedWeights, PureFunction, checked_bounds, pure_function
from netloop.compiler.product_precision import CALLERS, HIGHEST
from netloop.compiler.recipe import Recipe
from netloop.model.graph import ITensor, check_instance
from netloop.model.network import INetworkDefinition
from netloop.process.atomic_write import write_whole
from netloop.values.diagnostics import Finding, NetworkError, reason
from netloop.values.types import UNKNOWN, Array

Shapes = Mapping[str, Sequence[int]]
Arrays = Mapping[str, Any]

BACKENDS = {"cuda": "gpu", "rocm": "gpu"}
"""The names of JAX's backends by those of platforms in programs, where they differ."""
SEVERAL = "several"
"""The name that stands for several platforms, for which there are only the passes that are for all."""

ROWS_TRIED = 3
"""The number of rows on which a program of any number of rows is compared with the network."""


def exported(
    network: INetworkDefinition,
    shapes: Shapes | None = None,
    *,
    platforms: Sequence[str] | None = None,
    batch: str | None = None,
    weights_inside: bool = True,
    tf32: bool = True,
    bound: Mapping[str, int] | None = None,
) -> export.Exported:
    """A network as ``jax.export`` keeps functions: a program, with the types of its arguments and results.

    The program takes the inputs as a dict from names to arrays, and returns the dict of the outputs. As with
    ``to_jax``, errors that an engine raises are not reported.

    Args:
        network: the network.
        shapes: the shapes of inputs, by name, which inputs with open lengths need.
        platforms: the platforms that the program is for, such as ``["cpu", "cuda"]``; by default the present one.
        batch: a name for any number of rows, such as ``"b"``: the program takes that many rows of each input whose
            first axis is open. Row i of each output must depend on row i of the inputs only; it is computed by itself.
        weights_inside: whether the weights are part of the program. If not, it takes them first, as the dict that
            ``to_jax`` returns.
        tf32: whether products and convolutions of float32 have the precision that JAX is set to now, as of ``to_jax``:
            by default the fast one of each platform. If not, they are those of float32 on all of them.
        bound: the largest number of iterations of loops by name, as of ``to_jax``: for those that append to lists.

    Raises:
        NetworkError: the network is invalid, or nested too deep; or its rows depend on each other.
        ValueError: the shape of an input is open, a bound is negative, or the network has no loop of its name.
    """
    function, weights, types = function_of(network, shapes, batch, tf32, platforms or (), bound)
    with jax.enable_x64(True):
        if weights_inside:
            return export.export(jax.jit(lambda inputs: function(weights, inputs)), platforms=platforms)(types)
        return export.export(jax.jit(function), platforms=platforms)(weights, types)


def function_of(
    network: INetworkDefinition,
    shapes: Shapes | None,
    batch: str | None,
    tf32: bool = True,
    platforms: Sequence[str] = (),
    bound: Mapping[str, int] | None = None,
) -> tuple[PureFunction, NamedWeights, dict[str, jax.ShapeDtypeStruct]]:
    """The function that ``exported`` writes, its weights, and the types of its inputs; it raises the same errors."""
    backends = {BACKENDS.get(platform, platform) for platform in platforms}
    platform = SEVERAL if len(backends) > 1 else next(iter(backends), "")
    precision = CALLERS if check_instance("tf32", tf32, bool) else HIGHEST
    bounds = checked_bounds(bound, network)
    recipe = Recipe(PURE, is_pure=True, bounds=bounds, platform=platform, precision=precision)
    function, weights = pure_function(network, recipe)
    types = {tensor.name: _type_of(tensor, shapes or {}, batch) for tensor in network.inputs}
    if batch is not None:
        function = _by_row(function, weights, network, types)
        (rows,) = export.symbolic_shape(batch)
        for row in _with_rows(network.inputs):
            type_ = types[row.name]
            types[row.name] = jax.ShapeDtypeStruct((rows, *type_.shape[1:]), type_.dtype)
    return function, weights, types


def save(program: export.Exported, path: str | os.PathLike[str], *, as_text: bool) -> None:
    """Write a program as text, or as the bytes that ``jax.export.deserialize`` reads; the file is whole or not there.

    Raises:
        OSError: it cannot be written.
    """
    write_whole(Path(path), [program.mlir_module().encode() if as_text else bytes(program.serialize())])


def write(
    network: INetworkDefinition,
    path: Path,
    shapes: Shapes | None,
    batch: str | None,
    tf32: bool,
    platforms: Sequence[str] | None = None,
    bound: Mapping[str, int] | None = None,
) -> None:
    """Write the program of a network, as text if the suffix is ``.mlir``."""
    program = exported(network, shapes, platforms=platforms, batch=batch, tf32=tf32, bound=bound)
    save(program, path, as_text=path.suffix.lower() == ".mlir")


def _type_of(tensor: ITensor, shapes: Shapes, batch: str | None) -> jax.ShapeDtypeStruct:
    """The type of an input; with a batch, that of one row."""
    shape = tuple(shapes.get(tensor.name, tensor.shape))
    if batch is not None and tensor.shape[:1] == (UNKNOWN,):
        shape = (1, *shape[1:])
    if UNKNOWN in shape:
        raise ValueError(f"input {tensor.name!r} is {tensor.type}: give its shape")
    return jax.ShapeDtypeStruct(shape, tensor.type.dtype)


# ---------------------------------------------------------------------------- any number of rows


def _with_rows(tensors: Sequence[ITensor]) -> list[ITensor]:
    return [tensor for tensor in tensors if tensor.type.is_tensor and tensor.shape[:1] == (UNKNOWN,)]


def _by_row(
    function: PureFunction, weights: Arrays, network: INetworkDefinition, types: Mapping[str, jax.ShapeDtypeStruct]
) -> PureFunction:
    """The function of any number of rows, which computes each by itself.

    The network's lengths are integers, so that it cannot be traced with symbolic ones; ``vmap`` of a single row can.
    """
    names = [row.name for row in _with_rows(network.inputs)]
    fixed = [tensor.name for tensor in network.outputs if tensor not in _with_rows(network.outputs)]
    if fixed or not names:
        which = f"output {fixed[0]!r} has no rows" if names else "no input has rows"
        _refuse(f"{which}, as its first axis is not open")

    def rows(weights: Arrays, inputs: Arrays) -> dict[str, jax.Array]:
        def one(row: Arrays) -> dict[str, jax.Array]:
            return function(weights, {**inputs, **{name: value[None] for name, value in row.items()}})

        outputs = jax.vmap(one)({name: inputs[name] for name in names})
        return {name: array.reshape(array.shape[0], *array.shape[2:]) for name, array in outputs.items()}

    _require_same(function, rows, weights, _drawn(types, names))
    return rows


def _drawn(types: Mapping[str, jax.ShapeDtypeStruct], names: Sequence[str]) -> dict[str, Array]:
    """Random inputs of a few rows, from 0 to 1."""
    random = np.random.default_rng(0)
    shapes = {name: (ROWS_TRIED, *of.shape[1:]) if name in names else of.shape for name, of in types.items()}
    return {name: (random.random(shapes[name]) * 1.99).astype(of.dtype) for name, of in types.items()}


def _require_same(function: PureFunction, rows: PureFunction, weights: Arrays, inputs: Arrays) -> None:
    # products whose operands are rounded would differ by more, and by another program in another way
    with jax.default_matmul_precision(HIGHEST):
        together, apart = function(weights, inputs), rows(weights, inputs)
    for name, array in together.items():
        one, other = np.asarray(array), np.asarray(apart[name])
        if one.shape != other.shape or not np.allclose(one, other, rtol=1e-2, atol=1e-3, equal_nan=True):
            _refuse(f"rows of output {name!r} change with rows that are none of theirs")


def _refuse(what: str) -> None:
    fix = "export the network for a fixed number of rows: leave out batch, and give shapes"
    raise NetworkError(Finding("NL615", what, "", reason("NL615"), fix))
