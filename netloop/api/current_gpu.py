"""The GPU that a script has made CUDA's current one, on which TensorRT makes its engines."""

import sys
from typing import Any

import jax

from netloop.compiler.placement import Placement
from netloop.values.devices import JaxDevice

RUNTIMES = "cuda.bindings.runtime", "cuda.cudart"
"""The modules of CUDA's runtime; a script that chooses a GPU has imported one of them, or PyTorch."""
PLATFORM = "gpu"


def current_gpu() -> JaxDevice | None:
    """The GPU of ``cudaSetDevice`` or ``torch.cuda.set_device``; None for JAX's default device.

    The first GPU is the current one of a script that chooses none, so that it stands for no choice. Its number is that
    of CUDA, of the GPUs that ``CUDA_VISIBLE_DEVICES`` leaves.
    """
    try:
        number = _number()
    except Exception:  # of a stand-in for one of these modules
        return None
    if not number or Placement.default().platform != PLATFORM:
        return None
    devices: list[Any] = jax.local_devices(backend=PLATFORM)
    return next((device for device in devices if device.local_hardware_id == number), None)


def _number() -> int:
    for name in RUNTIMES:
        runtime: Any = sys.modules.get(name)
        if runtime is not None:
            status, number = runtime.cudaGetDevice()
            return int(number) if not int(status) else 0
    torch: Any = sys.modules.get("torch")
    # a process that has not used a GPU in PyTorch is not to start it there
    return torch.cuda.current_device() if torch is not None and torch.cuda.is_initialized() else 0
