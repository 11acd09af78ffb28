"""Primitives of several devices: those along axes of vmap are reductions, and no others have layers."""

from netloop.formats.from_jax.rules import EquationCall, primitive, refuse
from netloop.formats.from_jax.rules.reduce import REDUCE
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require

BETWEEN_DEVICES = (
    "it exchanges values between devices, and a function of one device has no axis for them; "
    "vmap with an axis_name resolves it"
)


@primitive("psum", "pmax", "pmin")
def of_named_axes(call: EquationCall, *operands: ITensor) -> list[ITensor]:
    """The reductions over axes that vmap has put instead of their names."""
    axes, name = call.params["axes"], call.name
    require(
        all(isinstance(axis, int) for axis in axes) and call.params["axis_index_groups"] is None,
        f"{name} along the axes {', '.join(map(str, axes))}",
        BETWEEN_DEVICES,
    )
    by = REDUCE[name.replace("p", "reduce_", 1)]
    return [call.make.reduce(by, tensor, axes) if axes else tensor for tensor in operands]


refuse(
    BETWEEN_DEVICES,
    "all_gather", "all_gather_invariant", "all_gather_reduced", "all_to_all", "axis_index", "pbroadcast",
    "ppermute", "psum_invariant", "psend", "precv", "preduced", "ragged_all_to_all", "reduce_scatter",
    "shard_map", "unreduced_psum", "unreduced_reduce_scatter",
)  # fmt: skip
