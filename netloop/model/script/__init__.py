"""Networks as Python scripts that build them with TensorRT's API.

>>> # netloop.script.save(network, "build_model.py", module="tensorrt")
"""

import os
from pathlib import Path
from typing import Literal

from netloop.model.check import check
from netloop.model.network import INetworkDefinition
from netloop.model.script.text import module_text
from netloop.model.script.values import ScriptWeights
from netloop.model.script.writer import ScriptWriter
from netloop.process.atomic_write import Part, write_together
from netloop.values.diagnostics import NetworkError, Severity

SLOWER = frozenset({"NL302"})
"""The portability findings of networks that TensorRT runs with the same results, though it computes more."""

ASSUMED = frozenset({"keeps_shape"})
"""The attributes that TensorRT lacks because it assumes one value: that the shape of a recurrence stays."""

Module = Literal["netloop", "tensorrt"]


def save(network: INetworkDefinition, path: str | os.PathLike[str], module: Module = "netloop") -> None:
    """Write a script that builds a network, and its large weights into an .npz file next to it.

    The script has a function ``build()`` that returns a network with the same layers, names and weights. Loops and
    conditionals keep their names. A layer whose input is a tensor of a later
    layer comes after it, and a type conversion that setting the ``dtype`` of a tensor added is a cast like others.

    Args:
        network: the network.
        path: the path of the script; the name of the .npz file differs in its suffix.
        module: the module that the script imports as ``trt``. A script for tensorrt uses TensorRT's API only.

    Raises:
        NetworkError: the network has errors; ``module`` is tensorrt, and TensorRT would refuse the network; or a plugin
            has no name by which a script could find its creator.
        OSError: a file cannot be written.
    """
    text, arrays = to_script(network, module, Path(path).with_suffix(".npz").name)
    files: dict[Path, list[Part]] = {Path(path): [text.encode("utf-8")]}
    if arrays:
        files[Path(path).with_suffix(".npz")] = [arrays.npz()]
    write_together(files)


def to_script(
    network: INetworkDefinition, module: Module = "netloop", weights: str = "weights.npz"
) -> tuple[str, ScriptWeights]:
    """Return the text of a script that builds a network, and the arrays that it reads, by name.

    Args:
        network: the network.
        module: the module that the script imports as ``trt``.
        weights: the name of the .npz file that the script reads the arrays from, in its own folder.

    Raises:
        NetworkError: see ``save``.
        ValueError: there is no such module.
    """
    if module not in ("netloop", "tensorrt"):
        raise ValueError(f"module must be 'netloop' or 'tensorrt', not {module!r}")
    findings = check(network, "tensorrt" if module == "tensorrt" else None)
    errors = [finding for finding in findings if finding.severity is Severity.ERROR and finding.code not in SLOWER]
    if errors:
        raise NetworkError(*errors)
    writer = ScriptWriter(network, ASSUMED if module == "tensorrt" else frozenset())
    lines = writer.lines()
    return module_text(network, module, weights, lines, writer.weights), writer.weights
