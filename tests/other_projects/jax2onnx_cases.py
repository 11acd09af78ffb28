"""Convert the published cases of the package jax2onnx by netloop and by jax2onnx, and run both in onnxruntime.

``python -m tests.other_projects.jax2onnx_cases`` needs jax2onnx, flax, equinox and onnxruntime. The functions and the
shapes of their inputs are those of the installed jax2onnx, of which each plugin lists some; nothing of it is part of
netloop. A case counts if JAX itself can run it. An open length is 3. Complex numbers are given and taken as pairs, as
both converters have them. Outputs agree if they are those of JAX, within 1e-3 of their largest number.
"""

import json
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import onnx
import onnxruntime

import netloop as trt

SECONDS = 60
"""The most that a conversion and a run may take."""
OPEN = 3


class Case(NamedTuple):
    """A function with inputs.

    Attributes:
        name: its name, with the part of jax2onnx that lists it.
        function: the function.
        inputs: arrays.
        specs: the inputs as jax2onnx takes them, where lengths may be open.
        is_double: whether it is for numbers of 64 bits.
    """

    name: str
    function: Callable[..., Any]
    inputs: list[np.ndarray]
    specs: list[Any]
    is_double: bool


def cases() -> Iterator[Case]:
    """The cases that the installed jax2onnx lists, without those that need more than arrays."""
    plugins = import_module("jax2onnx.plugins.plugin_system")
    plugins.import_all_plugins()
    listed = {**plugins.PLUGIN_REGISTRY, **plugins.EXAMPLE_REGISTRY}
    for entry in listed.values():
        data = entry if isinstance(entry, dict) else getattr(entry, "metadata", None) or {}
        for value in data.get("testcases", ()):
            if not value.get("input_params"):
                yield _case(f"{data.get('context', '')} {value['testcase']}".strip(), value)


def _case(name: str, given: dict[str, Any]) -> Case:
    function = given["callable"]
    if hasattr(function, "instantiate"):
        function = function.instantiate()
    is_double = bool(given.get("run_only_f64_variant"))
    values, shapes = given.get("input_values"), given.get("input_shapes") or []
    if values is not None:
        arrays = [np.asarray(value) for value in values]
        return Case(
            name, function, arrays, [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays], is_double
        )
    types = [
        np.dtype(value)
        for value in given.get("input_dtypes") or [np.float64 if is_double else np.float32] * len(shapes)
    ]
    random = np.random.default_rng(0)
    arrays, specs = [], []
    for shape, dtype in zip(shapes, types, strict=False):
        shape = shape if isinstance(shape, Sequence) and not isinstance(shape, str) else (shape,)
        lengths = tuple(OPEN if isinstance(length, str) else length for length in shape)
        arrays.append(np.asarray(random.uniform(0.1, 0.9, lengths) * (1 if dtype.kind in "fc" else 2)).astype(dtype))
        specs.append(tuple(shape) if dtype == np.float32 else jax.ShapeDtypeStruct(lengths, dtype))
    return Case(name, function, arrays, specs, is_double)


# ---------------------------------------------------------------------------- both converters


def by_netloop(case: Case, folder: Path) -> onnx.ModelProto:
    """The model of netloop."""
    network = trt.from_jax(case.function, *case.inputs, names=[f"in{index}" for index in range(len(case.inputs))])
    trt.onnx.save(network, folder / "model.onnx")
    return onnx.load(folder / "model.onnx")


def by_jax2onnx(case: Case, folder: Path) -> onnx.ModelProto:
    """The model of jax2onnx."""
    return import_module("jax2onnx").to_onnx(case.function, case.specs, enable_double_precision=case.is_double)


CONVERTERS = {"netloop": by_netloop, "jax2onnx": by_jax2onnx}


def outcome(case: Case, convert: Callable[[Case, Path], onnx.ModelProto], wanted: list[np.ndarray]) -> tuple[str, int]:
    """``agrees``, or what went wrong and where; and the number of nodes of the model."""
    stage, nodes = "converting", 0
    try:
        with tempfile.TemporaryDirectory() as name, limited():
            model = convert(case, Path(name))
            nodes, stage = number_of_nodes(model), "running"
            session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            given = zip(session.get_inputs(), map(pairs, case.inputs), strict=True)
            found = session.run(None, {value.name: as_typed(array, value.type) for value, array in given})
    except Exception as error:
        return f"{stage}: {type(error).__name__}: {str(error)[:200]}", nodes
    if len(found) != len(wanted):
        return f"{len(found)} outputs, not {len(wanted)}", nodes
    return next((why for why in map(difference, found, wanted) if why), "agrees"), nodes


def difference(found: Any, wanted: np.ndarray) -> str:
    """Why an output is not that of JAX; empty if it is."""
    found, wanted = np.asarray(found), pairs(wanted)
    if found.shape != wanted.shape:
        return f"shape {found.shape}, not {wanted.shape}"
    one, other = (value.astype(np.float64) for value in (found, wanted))
    most = np.abs(other[np.isfinite(other)]).max(initial=1)
    return "" if np.allclose(one, other, rtol=1e-3, atol=1e-3 * most, equal_nan=True) else "other numbers"


def pairs(array: np.ndarray) -> np.ndarray:
    """An array with complex numbers as pairs along a last axis."""
    return np.stack([array.real, array.imag], -1) if np.iscomplexobj(array) else array


def as_typed(array: np.ndarray, kind: str) -> np.ndarray:
    """An array with the floats of an input: without its setting x64, JAX computes with 32 bits what has 64."""
    wanted = {"tensor(float)": np.float32, "tensor(double)": np.float64}.get(kind)
    return array if wanted is None or array.dtype not in (np.float32, np.float64) else array.astype(wanted)


def number_of_nodes(model: onnx.ModelProto) -> int:
    """The nodes of a model, with those of functions where they are called."""
    functions = {(function.domain, function.name): function.node for function in model.functions}

    def count(nodes: Sequence[onnx.NodeProto]) -> int:
        total = 0
        for node in nodes:
            inner = functions.get((node.domain, node.op_type))
            total += 1 if inner is None else count(inner)
            total += sum(
                count(attribute.g.node) for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH
            )
        return total

    return count(model.graph.node)


@contextmanager
def limited() -> Iterator[None]:
    """A context that ends by a TimeoutError after some time."""

    def stop(*given: Any) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def wanted_of(case: Case) -> list[np.ndarray] | None:
    """What JAX computes; None if it cannot run the case."""
    try:
        with limited():
            return [np.asarray(leaf) for leaf in jax.tree.leaves(case.function(*case.inputs))]
    except Exception:
        return None


def main() -> None:
    """Print a line for each case, and at the end how many of them each converter gets right."""
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    nodes: Counter[str] = Counter()
    for case in cases():
        with jax.enable_x64(case.is_double):
            wanted = wanted_of(case)
            if wanted is None:
                counts["JAX cannot run it"] += 1
                continue
            made = {name: outcome(case, convert, wanted) for name, convert in CONVERTERS.items()}
        counts.update(["all", *(name for name, (what, _) in made.items() if what == "agrees")])
        counts.update(f"{name} does not convert" for name, (what, _) in made.items() if what.startswith("converting"))
        if all(what == "agrees" for what, _ in made.values()):
            nodes.update({"both": 1, **{name: number for name, (_, number) in made.items()}})
        print(json.dumps({"case": case.name, **made}), flush=True)
    print(dict(counts), file=sys.stderr)
    print("nodes, where both agree:", dict(nodes), file=sys.stderr)


if __name__ == "__main__":
    main()
