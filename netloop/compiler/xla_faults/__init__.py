"""Faults of XLA's compilers: for CPUs, as they show in a compiled program (docs/decisions/0038 has their conditions),
and programs for GPUs that it refuses (``triton``).
"""

from netloop.compiler.xla_faults.library import WITHOUT_LIBRARY_FAULTS, has_library_fault
from netloop.compiler.xla_faults.updates import WITHOUT_UPDATE_FAULTS, has_update_fault


def options_without_faults(text: str) -> dict[str, str]:
    """The compiler options without which XLA computes wrong numbers in a program, from its text; empty for most."""
    library = WITHOUT_LIBRARY_FAULTS if has_library_fault(text) else {}
    return {**library, **(WITHOUT_UPDATE_FAULTS if has_update_fault(text) else {})}
