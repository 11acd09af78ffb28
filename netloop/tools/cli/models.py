"""Models as networks, whatever their format."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import netloop as trt
from netloop.tools.cli import on_demand
from netloop.tools.cli.arguments import SUFFIXES, Lengths, file_and_function
from netloop.tools.cli.failures import Misuse
from netloop.tools.cli.progress import compiled, status
from netloop.tools.cli.python_file import network_of
from netloop.tools.cli.verbosity import note


def load(path: Path, shapes: Mapping[str, Lengths] | None = None) -> trt.INetworkDefinition:
    """The network of a model; ``shapes`` are those of the arguments of a JAX function, ``file.py:function``.

    Raises:
        Misuse: there is no such file, or it builds no network.
        NetloopError: the model is invalid.
        ModuleNotFoundError: the package for the format is missing.
    """
    file, function = file_and_function(path)
    if not file.is_file():
        raise Misuse(f"there is no file {str(file)!r}")
    with status(f"importing {path}"):
        if function:
            return on_demand.jax_function.network_of(file, function, shapes or {})
        return network_of(path) if path.suffix.lower() == ".py" else module_of(path).load(path)


def set_weights(network: trt.INetworkDefinition, weights: Path | None) -> None:
    """Replace weights of a network by those of a file, if there is one.

    Raises:
        FileFormatError: the file is damaged, or an array does not fit.
        ModuleNotFoundError: the package for the format is missing.
    """
    if weights is not None:
        unknown = trt.safetensors.set_weights(network, weights)
        if unknown:
            note(f"the model lacks {len(unknown)} of the names in {weights}, such as {unknown[0]!r}")


def file_of_peers(args: argparse.Namespace) -> Path | None:
    """The file that other runtimes read; None if its weights are replaced, so that they run what netloop exports."""
    return args.model if args.weights is None else None


def engine(
    path: Path, network: trt.INetworkDefinition, no_tf32: bool = False, weights: Path | None = None, **options: Any
) -> trt.ICudaEngine:
    """The engine of a model, by options of ``netloop.compile``; one of a plan has those with which it was built, too.

    Args:
        path: the model.
        network: its network.
        no_tf32: whether its products are those of float32 on every device.
        weights: the file of weights that the network has instead of its own.
        options: those of tuning.

    Raises:
        NetloopError: the network is invalid, or the plan damaged.
    """
    if path.suffix.lower() != ".plan":
        return compiled(network, str(path), tf32=not no_tf32, **options)
    result = on_demand.plan_engine.engine(path, no_tf32, **options)
    if weights is not None:
        refitter = trt.Refitter(result, trt.Logger())
        names = refitter.get_all_weights()
        for name, array in trt.safetensors.load(weights).items():
            if name in names:
                refitter.set_named_weights(name, array)
        refitter.refit_cuda_engine()
    return result


def module_of(path: Path) -> Any:
    """The module of netloop for the format of a file."""
    return getattr(trt, SUFFIXES[path.suffix.lower()])


def counted(number: int, what: str) -> str:
    """A number with its noun: ``2 layers``."""
    return f"{number} {what}" + ("s" if number != 1 else "")
