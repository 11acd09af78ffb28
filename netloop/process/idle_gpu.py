"""A GPU that JAX does not run on: its plugin, a driver or the device is missing. It is found without importing JAX."""

import importlib.util
import os
import re
from pathlib import Path

from netloop.values.diagnostics import Finding, Severity, reason

CODE = "NL661"

PLUGINS = {"cuda13": ("jax_cuda13_plugin", 580), "cuda12": ("jax_cuda12_plugin", 525)}
"""For each extra the module of JAX's plugin, and the first driver that it runs with; the newest extra first."""

VISIBLE = "CUDA_VISIBLE_DEVICES"
ROOT = Path("/")


def idle_gpu(on_cpu: bool = False, root: Path = ROOT) -> Finding | None:
    """The finding for a GPU that programs will not run on, or for a plugin that has none; None if nothing is amiss.

    A machine with neither GPU nor plugin has no finding, and neither has a process that was asked to do without: by
    ``JAX_PLATFORMS``, or ``CUDA_VISIBLE_DEVICES`` without a number.

    Args:
        on_cpu: whether JAX has started, and runs programs on the CPU.
        root: the folder of ``dev`` and ``proc``.
    """
    if os.environ.get("JAX_PLATFORMS") or os.environ.get(VISIBLE, "0").strip() in ("", "-1"):
        return None
    extras = [extra for extra, (module, _) in PLUGINS.items() if importlib.util.find_spec(module) is not None]
    is_there, driver = has_gpu(root), driver_version(root)
    if is_there and not extras:
        what = "this machine has an NVIDIA GPU, and programs run on the CPU, as JAX's plugin for it is not installed"
        return _finding(what, _command(driver))
    if extras and not is_there:
        what = f"JAX's plugin for NVIDIA GPUs is installed (the extra {extras[0]}), and this process has none"
        return _finding(what, _way_to_a_device(extras[0], driver))
    if extras and driver is not None and driver < PLUGINS[extras[0]][1]:
        what = (
            f"the NVIDIA driver is version {driver}, and the extra {extras[0]} needs {PLUGINS[extras[0]][1]} or newer"
        )
        return _finding(what, _command(driver))
    if extras and on_cpu:
        what = "this machine has an NVIDIA GPU and JAX's plugin for it, and JAX could not start it"
        return _finding(what, "JAX_PLATFORMS=cuda python -c 'import jax; jax.devices()' prints the reason")
    return None


def has_gpu(root: Path = ROOT) -> bool:
    """Whether this process can see an NVIDIA GPU: a device file, which containers have only for GPUs given to them."""
    wsl = root / "dev/dxg", root / "usr/lib/wsl/lib/libcuda.so.1"  # the former alone may be any GPU of Windows
    return any((root / "dev").glob("nvidia[0-9]*")) or all(path.exists() for path in wsl)


def driver_version(root: Path = ROOT) -> int | None:
    """The major version of the NVIDIA driver that the kernel has loaded; None if none is, or if it cannot be read."""
    try:
        text = (root / "proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    version = re.search(r"\b(\d{3,4})\.\d+", text)
    return None if version is None else int(version[1])


def _command(driver: int | None) -> str:
    """The command that installs what a driver runs with."""
    fitting = [extra for extra, (_, first) in PLUGINS.items() if driver is None or driver >= first]
    if not fitting:
        return f"install a newer NVIDIA driver, then pip install 'netloop[{next(iter(PLUGINS))}]'"
    return f"pip install 'netloop[{fitting[0]}]'"


def _way_to_a_device(extra: str, driver: int | None) -> str:
    if driver is not None:
        return "give the container its GPUs: docker run --gpus all"
    first = PLUGINS[extra][1]
    return f"install the NVIDIA driver, version {first} or newer; on a machine without a GPU set JAX_PLATFORMS=cpu"


def _finding(what: str, fix: str) -> Finding:
    return Finding(CODE, what, why=reason(CODE), fix=fix, severity=Severity.WARNING)
