"""The precision of float32 products on the device at hand: ``python -m tests.gpu.check_precision``.

Each fact is a line: ``ok``, ``FAIL`` or ``error``, what it is, and the relative error that was measured. All facts are
checked, whatever fails; the exit status is 1 if one did. It takes about a minute on a GPU, and runs on a CPU too, where
nothing is rounded.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import netloop as trt
import netloop.stablehlo
from netloop.compiler.product_precision import CALLERS, HIGHEST, DeviceTraits, product_type
from netloop.peers import agreements

F, NONE = np.float32, trt.MatrixOperation.NONE
EXACT = 5e-6
"""The largest relative error of sums in float32: 256 numbers, or 9 x 16."""
ROUNDED = {"tensorfloat32": (5e-5, 5e-3), "bfloat16": (5e-4, 4e-2), "float32": (0.0, EXACT)}
"""The least and the largest relative error with operands of each type, in the norm."""

RANDOM = np.random.default_rng(0)
A, B = (RANDOM.normal(size=(256, 256)).astype(F) for _ in range(2))
IMAGE, KERNEL = RANDOM.normal(size=(1, 16, 32, 32)).astype(F), RANDOM.normal(size=(32, 16, 3, 3)).astype(F)
PRODUCT = A.astype(np.float64) @ B
WINDOWS = np.lib.stride_tricks.sliding_window_view(IMAGE.astype(np.float64), (3, 3), (2, 3))
CONVOLUTION = np.einsum("nchwij,kcij->nkhw", WINDOWS, KERNEL)

Line = tuple[bool, str]
CHECKS: list[Callable[[], Iterator[Line]]] = []


def check(function: Callable[[], Iterator[Line]]) -> Callable[[], Iterator[Line]]:
    """Add a function that yields facts."""
    CHECKS.append(function)
    return function


def device() -> Any:
    return jax.devices()[0]


def expected(tf32: bool) -> str:
    """The type to which the device rounds, by netloop's table."""
    return product_type(CALLERS if tf32 else HIGHEST, DeviceTraits.of(device())).name


def error(got: Any, right: np.ndarray) -> float:
    """The relative error in the norm."""
    return float(np.linalg.norm(np.asarray(got, np.float64) - right) / np.linalg.norm(right))


def fact(what: str, got: Any, right: np.ndarray, type_name: str) -> Line:
    """Whether the error of a result is one of a type."""
    (least, most), found = ROUNDED[type_name], error(got, right)
    return least <= found <= most, f"{what}: relative error {found:.2e}, of {type_name} from {least:.0e} to {most:.0e}"


def network(kind: str) -> tuple[trt.INetworkDefinition, dict[str, Any], np.ndarray]:
    """A product or convolution of two inputs, its inputs, and what it is in float64."""
    made = trt.INetworkDefinition()
    if kind == "product":
        a, b = (made.add_input(name, trt.float32, (256, 256)) for name in "ab")
        y, inputs, right = made.add_matrix_multiply(a, NONE, b, NONE), {"a": A, "b": B}, PRODUCT
    else:
        a, b = made.add_input("a", trt.float32, IMAGE.shape), made.add_constant(KERNEL.shape, KERNEL).get_output(0)
        y = made.add_convolution_nd(a, 32, (3, 3), trt.Weights(trt.float32))
        y.set_input(1, b)
        inputs, right = {"a": IMAGE}, CONVOLUTION
    y.get_output(0).name = "y"
    made.mark_output(y.get_output(0))
    return made, inputs, right


# ---------------------------------------------------------------------------- ways to run


def by_compile(made: trt.INetworkDefinition, inputs: Any, tf32: bool) -> Any:
    return trt.compile(made, tf32=tf32)(inputs)["y"]


def builder_plan(made: trt.INetworkDefinition, tf32: bool) -> Any:
    builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
    config = builder.create_builder_config()
    (config.set_flag if tf32 else config.clear_flag)(trt.BuilderFlag.TF32)
    return builder.build_serialized_network(made, config)


def by_builder(made: trt.INetworkDefinition, inputs: Any, tf32: bool) -> Any:
    runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))
    return runtime.deserialize_cuda_engine(builder_plan(made, tf32))(inputs)["y"]


def by_to_jax(made: trt.INetworkDefinition, inputs: Any, tf32: bool) -> Any:
    function, weights = trt.to_jax(made, tf32=tf32)
    return jax.jit(function)(weights, inputs)["y"]


def by_vmap(made: trt.INetworkDefinition, inputs: Any, tf32: bool) -> Any:
    function, weights = trt.to_jax(made, tf32=tf32)
    return jax.vmap(lambda given: function(weights, given)["y"])({name: x[None] for name, x in inputs.items()})[0]


def by_shard(made: trt.INetworkDefinition, inputs: Any, tf32: bool) -> Any:
    engine = trt.shard(made, jax.make_mesh((1,), ("rows",)), tf32=tf32)
    return engine({name: x[None] for name, x in inputs.items()})["y"][0]


def by_stablehlo(made: trt.INetworkDefinition, inputs: Any, tf32: bool) -> Any:
    return netloop.stablehlo.exported(made, tf32=tf32).call(inputs)["y"]


WAYS = {"compile": by_compile, "builder and plan": by_builder, "to_jax": by_to_jax, "to_jax, vmap": by_vmap,
        "shard": by_shard, "StableHLO": by_stablehlo}  # fmt: skip


@check
def device_is_known() -> Iterator[Line]:
    traits = DeviceTraits.of(device())
    yield True, f"{device().device_kind}, platform {traits.platform}, capability {traits.capability or 'none'}"
    yield True, f"jax {jax.__version__}, jax_default_matmul_precision {jax.config.jax_default_matmul_precision}"
    names = [trt.compile(network("product")[0], tf32=tf32).product_precision for tf32 in (True, False)]
    yield names[1] == "float32", f"product_precision with TF32: {names[0]}, without: {names[1]}"


def ways() -> Iterator[Callable[[], Iterator[Line]]]:
    for kind in ("product", "convolution"):
        for name, way in WAYS.items():
            for tf32 in (True, False):

                def one(kind: str = kind, name: str = name, way: Any = way, tf32: bool = tf32) -> Iterator[Line]:
                    made, inputs, right = network(kind)
                    what = f"{kind} by {name}, TF32 {'on' if tf32 else 'off'}"
                    yield fact(what, way(made, inputs, tf32), right, expected(tf32))

                yield one


CHECKS.extend(ways())


@check
def setting_of_jax_holds_from_the_moment_of_compilation() -> Iterator[Line]:
    made, inputs, right = network("product")
    with jax.default_matmul_precision("highest"):
        engine = trt.compile(made)
    yield fact("compiled while JAX is set to highest", engine(inputs)["y"], right, "float32")
    with jax.default_matmul_precision("highest"):
        y = trt.compile(network("product")[0], tf32=True)(inputs)["y"]
    yield fact("with tf32=True while JAX is set to highest", y, right, "float32")
    engine = trt.compile(made)
    with jax.default_matmul_precision("highest"):
        y = engine(inputs)["y"]
    yield fact("called while JAX is set to highest", y, right, expected(True))


@check
def weights_are_folded_in_float32() -> Iterator[Line]:
    made = trt.INetworkDefinition()
    x = made.add_input("x", trt.float32, (256, 256))
    a, b = (made.add_constant((256, 256), array).get_output(0) for array in (A, B))
    folded = made.add_matrix_multiply(a, NONE, b, NONE).get_output(0)
    y = made.add_elementwise(x, folded, trt.ElementWiseOperation.SUM).get_output(0)
    y.name = "y"
    made.mark_output(y)
    engine = trt.compile(made)
    yield fact("folded weights, TF32 on", engine({"x": np.zeros((256, 256), F)})["y"], PRODUCT, "float32")


@check
def derivatives_have_the_precision_too() -> Iterator[Line]:
    made, inputs, _ = network("product")
    right = A.T.astype(np.float64) @ B
    for tf32 in (True, False):
        function, weights = trt.to_jax(made, tf32=tf32)

        def total(given: dict[str, Any], cotangent: Any, function: Any = function, weights: Any = weights) -> Any:
            return jnp.sum(function(weights, given)["y"] * cotangent)

        what = f"gradient, TF32 {'on' if tf32 else 'off'}"
        yield fact(what, jax.jit(jax.grad(total))(inputs, B)["b"], right, expected(tf32))


@check
def host_execution_has_the_precision_too() -> Iterator[Line]:
    for tf32 in (True, False):
        made, inputs, right = network("product")
        places = made.add_non_zero(made.inputs[0]).get_output(0)
        places.name = "places"
        made.mark_output(places)
        what = f"in a network of data-dependent shapes, TF32 {'on' if tf32 else 'off'}"
        yield fact(what, trt.compile(made, tf32=tf32)(inputs)["y"], right, expected(tf32))


def looped() -> trt.INetworkDefinition:
    """A state times an orthogonal matrix, 20 times."""
    made = trt.INetworkDefinition()
    x = made.add_input("x", trt.float32, (4, 256))
    turn = np.linalg.qr(A.astype(np.float64))[0].astype(F)
    loop = made.add_loop()
    loop.add_trip_limit(made.add_constant((), np.array(20, np.int32)).get_output(0), trt.TripLimit.COUNT)
    state = loop.add_recurrence(x)
    turned = made.add_constant((256, 256), turn).get_output(0)
    state.set_input(1, made.add_matrix_multiply(state.get_output(0), NONE, turned, NONE).get_output(0))
    y = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)
    y.name = "y"
    made.mark_output(y)
    return made


@check
def loops_have_the_precision_too() -> Iterator[Line]:
    made, inputs = looped(), {"x": A[:4]}
    right = trt.evaluate(made, inputs)["y"].astype(np.float64)
    found = error(trt.compile(made, tf32=False)(inputs)["y"], right)
    yield found <= 10 * EXACT, f"20 products in a loop, TF32 off: relative error {found:.2e}"
    found = error(trt.compile(made)(inputs)["y"], right)
    yield True, f"20 products in a loop, TF32 on: relative error {found:.2e} (measured only)"


@check
def comparisons_know_the_device() -> Iterator[Line]:
    for made, inputs in (network("product")[:2], network("convolution")[:2], (looped(), {"x": A[:4]})):
        for tf32 in (True, False):
            engine = trt.compile(made, tf32=tf32)
            found = trt.compare(made, inputs, engine)
            yield found.agrees and found.products == expected(tf32), f"comparison: {found}".replace("\n", "; ")
            (outputs,) = agreements(engine(inputs), trt.evaluate(made, inputs), engine=engine)
            yield outputs.agrees, f"agreement: {outputs}"


@check
def transforms_are_of_float32() -> Iterator[Line]:
    made = trt.INetworkDefinition()
    x = made.add_input("x", trt.float32, (64, 64))
    y = made.add_determinant(x).get_output(0)
    y.name = "y"
    made.mark_output(y)
    matrix = np.linalg.qr(A[:64, :64].astype(np.float64))[0].astype(F)
    right = np.asarray(np.linalg.det(matrix.astype(np.float64)))
    yield fact("determinant of 64 x 64, TF32 on", trt.compile(made)({"x": matrix})["y"], right, "float32")


@check
def half_types_are_not_rounded_further() -> Iterator[Line]:
    made = trt.INetworkDefinition()
    a, b = (made.add_input(name, trt.float16, (256, 256)) for name in "ab")
    y = made.add_matrix_multiply(a, NONE, b, NONE).get_output(0)
    y.name = "y"
    made.mark_output(y)
    halves = {"a": A.astype(np.float16), "b": B.astype(np.float16)}
    right = halves["a"].astype(np.float64) @ halves["b"].astype(np.float64)
    for tf32 in (True, False):
        found = error(trt.compile(made, tf32=tf32)(halves)["y"], right)
        yield found <= 5e-4, f"product of float16, TF32 {'on' if tf32 else 'off'}: relative error {found:.2e}"


def lines(one: Callable[[], Iterator[Line]]) -> Iterator[tuple[str, str]]:
    """The facts of a check, each with a word; an exception is one."""
    try:
        for holds, what in one():
            yield "ok" if holds else "FAIL", what
    except Exception:
        yield "error", f"{one.__name__}: {traceback.format_exc(limit=-3)}".strip().replace("\n", " | ")


def main() -> int:
    """Check and print all facts; 1 if one does not hold."""
    wrong = 0
    for one in CHECKS:
        for word, what in lines(one):
            wrong += word != "ok"
            print(f"{word:5} {what}", flush=True)
    print(f"{wrong} facts do not hold" if wrong else "all facts hold")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
