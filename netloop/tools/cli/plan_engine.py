"""Engines of plans, with the options of their builds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import netloop as trt
from netloop.api.engine_plan import load_plan
from netloop.tools.cli.progress import compiled, status


def engine(path: Path, no_tf32: bool = False, **tuning: Any) -> trt.ICudaEngine:
    """The engine of a plan: as it was built, or tuned anew with what decides else how it was built.

    Args:
        path: the plan.
        no_tf32: whether its products are those of float32 on every device, also where its build allowed others.
        tuning: the options of ``netloop.compile`` for tuning.

    Raises:
        NetloopError: the plan is damaged, or its network invalid.
    """
    with status(f"loading {path}"):
        network, kept = load_plan(path)
        kept = replace(kept, tf32=kept.tf32 and not no_tf32)
        if not any(tuning.values()):
            return trt.ICudaEngine(network, kept)
    built = {"max_trips": kept.max_trips, "interruptible": kept.interruptible, "passes": kept.passes, "tf32": kept.tf32}
    return compiled(network, str(path), **built, donate=kept.donated, **tuning)
