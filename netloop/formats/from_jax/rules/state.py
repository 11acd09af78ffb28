"""References that a function reads and writes, and tokens: none has layers."""

from netloop.formats.from_jax.rule_table import refuse

refuse(
    "it reads or writes a mutable reference or a token, and a network has values only",
    "get", "swap", "addupdate", "run_state", "after_all", "create_token", "core_map", "dce_sink", "unreachable",
)  # fmt: skip
