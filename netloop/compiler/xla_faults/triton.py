"""Programs for GPUs that XLA refuses: its kernels in Triton cannot read every type that it fuses into them.

The softmax of int4 numbers is such a program. Without the fusion XLA computes it by several kernels of its own.
"""

from typing import Any

import jax

REFUSED = "Failed to compile Triton kernel"
PASS = "triton-softmax-rewriter"
DISABLED = "xla_disable_hlo_passes"


def compiled(lowered: Any, options: dict[str, Any] | None) -> Any:
    """XLA's program of what ``jax.jit(...).lower(...)`` returned; without fusions in Triton where these do not compile.

    Raises:
        JaxRuntimeError: XLA refuses it nevertheless.
    """
    try:
        return lowered.compile(compiler_options=options)
    except jax.errors.JaxRuntimeError as error:
        if REFUSED not in str(error):
            raise
    options = options or {}
    names = [name for name in (options.get(DISABLED, ""), PASS) if name]
    return lowered.compile(compiler_options={**options, DISABLED: ",".join(names)})
