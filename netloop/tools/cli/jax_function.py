"""The network of a JAX function in a Python file: ``file.py:function``, with example arguments of the file."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np

import netloop as trt
from netloop.tools.cli.arguments import Lengths
from netloop.tools.cli.failures import Misuse
from netloop.tools.cli.python_file import names_in, running
from netloop.values.types import UNKNOWN

EXAMPLES, WEIGHTS = "examples", "weights"
"""The variables of the file: a tuple of arguments, and the names of those that become weights."""


def network_of(file: Path, name: str, shapes: Mapping[str, Lengths]) -> trt.INetworkDefinition:
    """Return the network of a function of a file.

    Its arguments are like those in the variable ``examples`` of the file, a tuple; ``shapes``, by the names of
    parameters, are other shapes, with open lengths where they have names, and float32 arrays without examples. The
    variable ``weights`` of the file names the arguments that become weights.

    Raises:
        Misuse: there is no such function, or an argument has no example.
        ModelError: the function has primitives that networks do not have.
    """
    names = names_in(file)
    function = names.get(name)
    if not callable(function):
        raise Misuse(f"{file} has no function {name}()")
    arguments = _arguments(file, function, names.get(EXAMPLES), shapes)
    with running(file, f"tracing {name}()"):
        return trt.from_jax(function, *arguments, weights=names.get(WEIGHTS, ()))


def _arguments(file: Path, function: Callable[..., Any], examples: Any, shapes: Mapping[str, Lengths]) -> list[Any]:
    parameters = [*inspect.signature(function).parameters]
    unknown = [shape for shape in shapes if shape not in parameters]
    if unknown:
        raise Misuse(f"{function.__name__}() of {file} has no parameter {', '.join(unknown)}")
    symbolic = _symbolic(shapes)
    results = list(examples) if isinstance(examples, tuple | list) else [examples]
    if examples is None or (len(results) != len(parameters) and shapes.keys() >= {*parameters}):
        missing = [parameter for parameter in parameters if parameter not in shapes]
        if missing:
            advice = f"write {EXAMPLES} = (...) in the file, or give --shapes {missing[0]}:2x3"
            raise Misuse(f"{file} has no example of {', '.join(missing)}; {advice}")
        return [jax.ShapeDtypeStruct(symbolic[parameter], np.float32) for parameter in parameters]
    _require_fitting(file, function, results)
    for number, (parameter, example) in enumerate(zip(parameters, results, strict=False)):
        if parameter in symbolic:
            results[number] = jax.ShapeDtypeStruct(symbolic[parameter], getattr(example, "dtype", np.float32))
    return results


def _symbolic(shapes: Mapping[str, Lengths]) -> dict[str, tuple[Any, ...]]:
    """Shapes with symbolic lengths of JAX where they have names or -1; equal names are equal lengths."""
    scope, numbers = jax.export.SymbolicScope(), itertools.count()
    result: dict[str, tuple[Any, ...]] = {}
    for parameter, lengths in shapes.items():
        names = (f"open_{next(numbers)}" if length == UNKNOWN else str(length) for length in lengths)
        result[parameter] = (*jax.export.symbolic_shape(",".join(names), scope=scope),)
    return result


def _require_fitting(file: Path, function: Callable[..., Any], examples: list[Any]) -> None:
    """Check that a function takes as many arguments as there are examples, which may be those of another one."""
    signature = inspect.signature(function)
    try:
        signature.bind(*examples)
    except TypeError as error:
        shapes = ",".join(f"{parameter}:2x3" for parameter in signature.parameters)
        takes = f"{EXAMPLES} of {file} has {len(examples)}, and {function.__name__}{signature} {error}"
        raise Misuse(f"{takes}; give the shapes of all its arguments: --shapes {shapes}") from None
