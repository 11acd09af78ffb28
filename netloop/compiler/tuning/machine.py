"""The machine that times were measured on."""

import hashlib
import os
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

from netloop.compiler.passes.matmul_partitioning import cores
from netloop.compiler.placement import Placement
from netloop.values.devices import JaxDevice

CPU_FILE = Path("/proc/cpuinfo")
FIELDS = "model name", "flags", "Features", "CPU part"
"""The fields of ``CPU_FILE`` that say what a processor can do, on x86 and on Arm."""


def this_machine(device: JaxDevice | None = None) -> str:
    """The processor, device, number of threads and compiler of this process, as one line.

    The device is JAX's default one, unless an engine has another.

    Programs and their times differ with each of them; ``XLA_FLAGS`` can limit the instructions that XLA uses.
    """
    device = device or Placement.default().device
    name, features = _processor()
    flags = os.environ.get("XLA_FLAGS", "")
    traits = hashlib.sha256(f"{features}\0{flags}".encode()).hexdigest()[:8]
    parts = name, f"{device.platform} {device.device_kind}", f"{cores()} threads", f"jaxlib {version('jaxlib')}", traits
    return ", ".join(parts)


@cache
def _processor() -> tuple[str, str]:
    """The name of the processor, and all that is known of its features."""
    texts = dict[str, str]()
    if CPU_FILE.is_file():
        for line in CPU_FILE.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in FIELDS:
                texts.setdefault(name.strip(), value.strip())
    name = texts.get("model name") or platform.processor() or platform.machine()
    return name, "; ".join(texts.values())
