"""Networks as files for other runtimes, most of which need neither netloop nor Python.

``export(network, "model.tflite")`` writes the file, or folder, that the suffix names. All formats hold the program that
``stablehlo.exported`` gives, weights included.
"""

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from netloop.formats.deploy.stablehlo import Shapes
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import listed


class Target(NamedTuple):
    """A file format that networks are written in.

    Attributes:
        module: the module whose ``write(network, path, shapes, batch, tf32, **options)`` writes it.
        package: the package that it imports; empty if JAX is enough.
        install: what pip installs to get this package.
    """

    module: str
    package: str = ""
    install: str = ""


TARGETS = {
    ".stablehlo": Target("netloop.formats.deploy.stablehlo"),
    ".mlir": Target("netloop.formats.deploy.stablehlo"),
    ".savedmodel": Target("netloop.formats.deploy.saved_model", "tensorflow", "tensorflow"),
    ".tflite": Target("netloop.formats.deploy.tflite", "tensorflow", "tensorflow"),
    ".vmfb": Target("netloop.formats.deploy.iree", "iree.compiler", "iree-base-compiler"),
}
"""The file formats by their suffixes: for ``jax.export``, as text, of TensorFlow, of LiteRT, and of IREE's runtime."""


def export(
    network: INetworkDefinition,
    path: str | os.PathLike[str],
    *,
    shapes: Shapes | None = None,
    batch: str | None = None,
    tf32: bool = True,
    **options: Any,
) -> None:
    """Write a network as a file, or folder, that another runtime loads.

    Errors that an engine raises are not reported by other runtimes: the affected outputs are undefined.

    Args:
        network: the network.
        path: where to write. The suffix names the format: ``.stablehlo`` is what ``jax.export.deserialize`` reads,
            ``.mlir`` its text, ``.savedmodel`` a folder that TensorFlow loads, ``.tflite`` a model of LiteRT, and
            ``.vmfb`` a module of IREE's runtime.
        shapes: the shapes of inputs, by name, which inputs with open lengths need.
        batch: a name for any number of rows, as for ``stablehlo.exported``; not for ``.tflite`` and ``.vmfb``.
        tf32: whether products and convolutions of float32 have the fast precision of a device, as of
            ``stablehlo.exported``; runtimes other than XLA may take no notice.
        options: ``platforms`` and ``bound`` for StableHLO; for IREE ``backends``, the names of its compiler's target
            backends, by default ``["llvm-cpu"]``, and ``flags`` of the compiler, by default those for any processor.

    Raises:
        ValueError: there is no format of this suffix; or the shape of an input is open.
        ModuleNotFoundError: the package that writes this format is not installed.
        NetworkError: the network is invalid, nested too deep, or cannot be written in this format.
        OSError: it cannot be written.
    """
    target = TARGETS.get(Path(path).suffix.lower())
    if target is None:
        raise ValueError(f"{os.fspath(path)!r} ends in none of {listed([*TARGETS])}")
    if target.package and not _is_installed(target.package):
        raise ModuleNotFoundError(
            f"{Path(path).suffix} is written by a package that is not installed: pip install {target.install}",
            name=target.package,
        )
    import_module(target.module).write(network, Path(path), shapes, batch, tf32, **options)


def _is_installed(name: str) -> bool:
    parent = name.partition(".")[0]
    return find_spec(parent) is not None and find_spec(name) is not None
