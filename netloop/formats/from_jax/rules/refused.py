"""Primitives of several devices and of effects: none has layers."""

from netloop.formats.from_jax.rule_table import BETWEEN_DEVICES, refuse

refuse(
    BETWEEN_DEVICES,
    "all_gather", "all_gather_invariant", "all_gather_reduced", "all_to_all", "axis_index", "pbroadcast",
    "ppermute", "psum_invariant", "psend", "precv", "preduced", "ragged_all_to_all", "reduce_scatter",
    "shard_map", "unreduced_psum", "unreduced_reduce_scatter",
)  # fmt: skip
refuse(
    "it calls Python, or another library, from inside the function, and a network cannot",
    "pure_callback", "io_callback", "debug_callback", "debug_print", "ffi_call", "custom_partitioning", "call_exported",
    "inspect_sharding", "check",
)  # fmt: skip
refuse(
    "it reads or writes a mutable reference or a token, and a network has values only",
    "get", "swap", "addupdate", "run_state", "after_all", "create_token", "core_map", "dce_sink", "unreachable",
)  # fmt: skip
refuse(
    "it is a step of a transformation, which is finished before a network is made; trace the function that is derived",
    "custom_lin", "linear_call", "stage", "create_linear", "to_edtype", "from_edtype",
)  # fmt: skip
refuse(
    "it selects by a function of its own; use the gradient of a maximum or minimum of windows",
    "select_and_scatter",
)  # fmt: skip
