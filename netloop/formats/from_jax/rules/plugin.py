"""Calls of Python and of other libraries: none has layers."""

from netloop.formats.from_jax.rule_table import refuse

refuse(
    "it calls Python, or another library, from inside the function, and a network cannot",
    "pure_callback", "io_callback", "debug_callback", "debug_print", "ffi_call", "custom_partitioning", "call_exported",
    "inspect_sharding", "check",
)  # fmt: skip
