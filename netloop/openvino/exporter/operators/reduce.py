"""Sums, products, extremes and orders along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from netloop.diagnostics import require
from netloop.onnx_graph.graph import Node
from netloop.onnx_graph.node_builder import BOOL, FLOAT, INT64
from netloop.openvino.exporter.layer_builder import LayerBuilder, stretched
from netloop.openvino.exporter.net import Port
from netloop.openvino.exporter.operator_table import says
from netloop.openvino.exporter.operators.pointwise import paired
from netloop.types import UNKNOWN, Shape

REDUCTIONS = {
    "ReduceSum": "ReduceSum",
    "ReduceProd": "ReduceProd",
    "ReduceMean": "ReduceMean",
    "ReduceMax": "ReduceMax",
    "ReduceMin": "ReduceMin",
}
FARTHEST = {"ReduceMax": -1.0, "ReduceMin": 1.0}
OF_FLAGS = {"ReduceMax": "ReduceLogicalOr", "ReduceMin": "ReduceLogicalAnd"}


def _enter(name: str, type: str) -> None:
    @says(name)
    def reduction(build: LayerBuilder, node: Node, x: Port, axes: Port | None = None) -> Port:
        keeps = bool(node.attributes.get("keepdims", 1))
        over = _all_axes(x, build) if axes is None else axes
        if build.known(over) == []:
            return x
        shape = _shape(x.shape, build.known(over), keeps)
        made = build.op(OF_FLAGS[type] if x.dtype == BOOL else type, 1, x, over, shape=shape, keep_dims=keeps)
        return _with_infinity(build, type, made) if type in FARTHEST and x.dtype.kind == "f" else made


def _with_infinity(build: LayerBuilder, type: str, x: Port) -> Port:
    """An extreme of infinities alone, or of nothing, for which OpenVINO gives the last finite number."""
    last = build.constant(FARTHEST[type] * np.finfo(x.dtype).max, x.dtype)
    is_last = paired(build, "Equal", x, last, dtype=BOOL)
    infinity = build.constant(FARTHEST[type] * np.inf, x.dtype)
    return build.pointwise("Select", is_last, infinity, x, dtype=x.dtype, auto_broadcast="numpy")


def _all_axes(x: Port, build: LayerBuilder) -> Port:
    require(x.shape is not None, "the number of its axes is not known")
    return build.ints(*range(len(x.shape or ())))


def _shape(shape: Shape | None, axes: list[int] | None, keeps: bool) -> Shape | None:
    if shape is None or axes is None:
        return None
    over = {axis % len(shape) for axis in axes}
    return tuple(1 if axis in over else length for axis, length in enumerate(shape) if keeps or axis not in over)


for _name, _type in REDUCTIONS.items():
    _enter(_name, _type)


@says("CumSum")
def cumulative_sum(build: LayerBuilder, node: Node, x: Port, axis: Port) -> Port:
    """The sums of all elements so far."""
    given = node.attributes
    flags: dict[str, Any] = {each: bool(given.get(each, 0)) for each in ("exclusive", "reverse")}
    return build.op("CumSum", 3, x, axis, shape=x.shape, **flags)


@says("Softmax")
def softmax(build: LayerBuilder, node: Node, x: Port) -> Port:
    """Shares along an axis."""
    return build.op("SoftMax", 8, x, shape=x.shape, axis=node.attributes["axis"])


@says("TopK")
def top_k(build: LayerBuilder, node: Node, x: Port, count: Port) -> tuple[Port, Port]:
    """The largest or smallest elements along an axis, and where they were."""
    axis, mode = node.attributes["axis"], "max" if node.attributes.get("largest", 1) else "min"
    shape, known = None, build.known(count)
    if x.shape is not None:
        place = axis % len(x.shape)
        shape = tuple(length if at != place else known[0] if known else UNKNOWN for at, length in enumerate(x.shape))
    made = Port(x.dtype, shape), Port(INT64, shape)
    number = build.reshape(count, build.constant(np.zeros(0, np.int64)))
    build.layer(
        "TopK", 11, [x, number], made, axis=axis, mode=mode, sort="value", index_element_type=INT64, stable=True
    )
    return made


@says("LayerNormalization")
def layer_normalization(build: LayerBuilder, node: Node, x: Port, scale: Port, bias: Port | None = None) -> Port:
    """Mean 0 and variance 1 along the last axes, then scaled and moved."""
    require(x.shape is not None, "the number of its axes is not known")
    axes = build.ints(*range(node.attributes["axis"], len(x.shape or ())))
    epsilon = float(node.attributes["epsilon"])
    made = build.op("MVN", 6, x, axes, shape=x.shape, normalize_variance=True, eps=epsilon, eps_mode="INSIDE_SQRT")
    made = paired(build, "Multiply", made, scale)
    return made if bias is None else paired(build, "Add", made, bias)


@says("LRN")
def lrn(build: LayerBuilder, node: Node, x: Port) -> Port:
    """Each element beside those of the channels around it."""
    numbers: dict[str, Any] = {each: float(node.attributes[each]) for each in ("alpha", "beta", "bias")}
    return build.op("LRN", 1, x, build.ints(1), shape=x.shape, size=node.attributes["size"], **numbers)


@says("MatMul")
def matmul(build: LayerBuilder, node: Node, a: Port, b: Port) -> Port:
    """The product of matrices."""
    shape = None
    if a.shape is not None and b.shape is not None and min(len(a.shape), len(b.shape)) > 1:
        batch = stretched((a.shape[:-2], b.shape[:-2])) or ()
        shape = (*batch, a.shape[-2], b.shape[-1])
    return build.op("MatMul", 1, a, b, shape=shape, transpose_a=False, transpose_b=False)


@says("Einsum")
def einsum(build: LayerBuilder, node: Node, *operands: Port) -> Port:
    """Products summed over the axes whose letters are not in the result."""
    return build.op("Einsum", 7, *operands, equation=node.attributes["equation"])


@says("RandomUniformLike")
def random_uniform(build: LayerBuilder, node: Node, x: Port) -> Port:
    """Numbers from 0 to 1."""
    return drawn(build, x, 0)


@says("RandomNormalLike")
def random_normal(build: LayerBuilder, node: Node, x: Port) -> Port:
    """Normal numbers, two uniform ones for each (G. E. P. Box and M. E. Muller, 1958)."""
    u, v = (drawn(build, x, seed) for seed in (1, 2))
    left = paired(build, "Subtract", build.number(1, u), u)
    length = paired(build, "Multiply", build.op("Log", 1, left, shape=x.shape), build.number(-2, u))
    turn = build.op("Cos", 1, paired(build, "Multiply", v, build.number(2 * np.pi, v)), shape=x.shape)
    return paired(build, "Multiply", build.op("Sqrt", 1, length, shape=x.shape), turn)


def drawn(build: LayerBuilder, x: Port, seed: int) -> Port:
    """Numbers from 0 to 1 in the shape of ``x``."""
    bounds = build.constant(0, FLOAT), build.constant(1, FLOAT)
    made = build.op(
        "RandomUniform", 8, build.shape_of(x), *bounds,
        dtype=FLOAT, shape=x.shape, output_type=FLOAT, global_seed=0, op_seed=seed,
    )  # fmt: skip
    return build.cast(made, x.dtype)
