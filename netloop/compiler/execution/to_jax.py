"""Convert a network to a pure JAX function."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from netloop.compiler.execution.lowered_network import LoweredNetwork
from netloop.compiler.execution.program_cache import Given, ProgramCache
from netloop.compiler.execution.weight_loading import WeightLoader, device_copy
from netloop.compiler.lower import constants_of
from netloop.compiler.lower.nesting import DEEPEST_PURE_NEST
from netloop.compiler.passes import LoweringForm, chosen
from netloop.compiler.passes.trip_counts import counted_loop
from netloop.compiler.product_precision import CALLERS, HIGHEST
from netloop.compiler.recipe import Recipe
from netloop.model.call_inputs import check_inputs
from netloop.model.check import ValidatedNetwork
from netloop.model.graph import ITensor, TypeTable, check_instance
from netloop.model.input_defaults import input_defaults, replaced_defaults, with_inputs
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.process.forked import require_jax
from netloop.values.checked_attributes import whole
from netloop.values.diagnostics import Finding, InputError, NetworkError, did_you_mean, listed, reason
from netloop.values.enums import TripLimit

PURE = chosen(None) - {LoweringForm.IF_CONVERSION}
"""The passes for a pure function: with if-conversion, a branch that is not taken would take part in derivatives."""

NamedWeights = dict[str, jax.Array]
PureFunction = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, jax.Array]]


def to_jax(
    network: INetworkDefinition,
    *,
    passes: Iterable[str] | None = None,
    load: bool = False,
    bound: Mapping[str, int] | None = None,
    tf32: bool = True,
) -> tuple[PureFunction, NamedWeights]:
    """Return a network as a pure function, and its weights.

    ``function(weights, inputs)`` returns a dict of the outputs by name, in the order in which they were marked, and
    works under ``jax.jit``, ``jax.grad``, ``jax.vmap``, ``jax.shard_map`` and the like. ``weights`` has the
    floating-point constants by the names of their layers; ``inputs`` is a dict from names to arrays. A loop whose COUNT
    limit follows from integer constants and shapes can be differentiated in forward and reverse mode, other loops in
    forward mode only, unless they have a ``bound``. Lists are arrays with a row for each tensor, and what has as many
    rows as a loop with a bound makes iterations is padded: an output ``y`` has zeros behind its elements then, and
    their shape is another output, ``y.shape``, int64. In reverse mode float64 values need JAX's x64 setting; int64 ones
    do not. Shapes that follow from floating-point constants stay fixed, whatever weights are passed. Errors that an
    engine raises as ExecutionError are not reported, because a pure function cannot raise: the affected outputs are
    undefined.

    A constant without a name of its own has a key such as ``(Unnamed Layer* 3) [Constant]``; set ``name`` of the layer
    for a readable one.

    Args:
        network: the network.
        passes: the names of the optimization passes to apply, of ``netloop.PASSES``; None for all, without those that
            derivatives forbid unless the weights are loaded.
        load: whether the weights are those that an engine has when it is loaded: joined, transposed and folded, so that
            a call costs what one of the engine does. They have names of their own, are for inference, and need inputs
            of fixed shapes.
        bound: for loops with a WHILE limit, or a COUNT that is known only in the call, the largest number of iterations
            by the name of the loop. They then have derivatives in reverse mode too, and may append to lists; their time
            and memory grow with the bound. Where a loop needs more iterations, its floating-point values are NaN.
        tf32: whether products and convolutions of float32 have the precision that JAX is set to when it traces the
            function, ``jax_default_matmul_precision``: by default TensorFloat-32 on GPUs and bfloat16 on TPUs. If not,
            they are those of float32 on every device, and so are their derivatives.

    Raises:
        NetworkError: the network is invalid, or nested too deep; or, while JAX differentiates the function, reverse
            mode meets a loop that needs a bound; or the weights are to be loaded, and the shape of an input is open. In
            the call: a shape depends on data, or a list has no bound (NL674) or cannot be an array (NL675).
        ValueError: a bound is negative, or the network has no loop of its name.
    """
    bounds = checked_bounds(bound, check_instance("network", network, INetworkDefinition))
    check_instance("load", load, bool)
    # loaded weights are for inference, which has no derivatives
    names = PURE if passes is None and not load else chosen(passes)
    precision = CALLERS if check_instance("tf32", tf32, bool) else HIGHEST
    return pure_function(network, Recipe(names, is_pure=True, bounds=bounds, precision=precision), load)


def pure_function(network: INetworkDefinition, recipe: Recipe, load: bool = False) -> tuple[PureFunction, NamedWeights]:
    """A network as a pure function by a recipe, and its weights; see :func:`to_jax`."""
    recipe.validated(network, DEEPEST_PURE_NEST)
    # a script may go on editing its network
    network = network.copy()
    with jax.enable_x64(True):
        function, weights = (_loaded if load else _plain)(network, recipe)
    # loaded weights may be joined with the default, for which nothing can be passed then
    return function if load else _with_defaults(function, network, recipe), weights


def _with_defaults(function: PureFunction, network: INetworkDefinition, recipe: Recipe) -> PureFunction:
    """A pure function whose inputs may also replace the defaults of a network."""
    defaults = frozenset(input_defaults(network))
    if not defaults:
        return function
    variants = {frozenset[str](): function}

    def choose(weights: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, jax.Array]:
        names = replaced_defaults(defaults, inputs)
        if names not in variants:
            variants[names], _ = pure_function(with_inputs(network, sorted(names)), recipe)
        return variants[names](weights, inputs)

    return choose


def _plain(network: INetworkDefinition, recipe: Recipe) -> tuple[PureFunction, NamedWeights]:
    """A network as a function of its own weights."""
    constants = constants_of(network)
    names = _names(constants)
    # integers have no derivatives, and are no weights
    fixed = {constant.index: constant.evaluate() for constant in constants if constant not in names.values()}

    def make(types: TypeTable, validated: ValidatedNetwork, given: Given) -> Callable[..., dict[str, Any]]:
        lowered = LoweredNetwork.of(network, types, validated, recipe)
        layers = lowered.source.network.layers

        def run(weights: list[Any], arrays: list[Any]) -> list[Any]:
            constants = {**fixed, **dict(zip((constant.index for constant in names.values()), weights, strict=True))}
            # layers have the same numbers in the copy that passes have rewritten
            values = {layers[index].outputs[0]: array for index, array in constants.items()}
            # without the error flags, as a pure function cannot raise
            return lowered.run(values, arrays).values

        return _by_name(lowered, jax.jit(run))

    programs = ProgramCache(network, make)
    tensors = {name: layer.outputs[0] for name, layer in names.items()}
    function = _function(network, tensors, lambda given: programs.find(given))
    return function, {name: device_copy(layer.evaluate()) for name, layer in names.items()}


def _loaded(network: INetworkDefinition, recipe: Recipe) -> tuple[PureFunction, NamedWeights]:
    """A network as a function of what an engine loads."""
    constants = constants_of(network)

    def make(types: TypeTable, validated: ValidatedNetwork, given: Given) -> tuple[PureFunction, NamedWeights]:
        lowered = LoweredNetwork.of(network, types, validated, recipe)
        loader = WeightLoader(lowered, constants)
        loaded = loader.values(loader.computed([device_copy(constant.evaluate()) for constant in constants]))
        tensors = _tensor_names(lowered.program.unfolded(loader.tensors))

        def run(weights: list[Any], arrays: list[Any]) -> list[Any]:
            return lowered.run(dict(zip(tensors.values(), weights, strict=True)), arrays).values

        compiled = _by_name(lowered, jax.jit(run))
        function = _function(network, tensors, lambda given: compiled)
        return function, {name: loaded[tensor] for name, tensor in tensors.items()}

    programs = ProgramCache(network, make)
    _require_fixed(network, programs.shape_inputs)
    return programs.find(
        {tensor: jax.ShapeDtypeStruct(tensor.type.shape, tensor.type.dtype) for tensor in network.inputs}
    )


def _function(
    network: INetworkDefinition, tensors: Mapping[str, ITensor], find: Callable[[Given], Callable[..., dict[str, Any]]]
) -> PureFunction:
    """The pure function, which checks what it is given."""

    def function(weights: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, jax.Array]:
        require_jax()
        with jax.enable_x64(True):
            values = check_inputs(network.inputs, _as_declared(network, inputs))
            named = [_weight(weights, name, tensor) for name, tensor in tensors.items()]
            return find(values)(named, list(values.values()))

    return function


def _by_name(lowered: LoweredNetwork, run: Callable[..., list[Any]]) -> Callable[..., dict[str, Any]]:
    """A compiled function that returns its outputs by name. A dict that JAX returns is in the order of its keys."""
    # padded ones have their shapes as outputs of their own
    names = [tensor.name for tensor in lowered.network.outputs]
    return lambda weights, arrays: dict(zip(names, run(weights, arrays), strict=True))


def _require_fixed(network: INetworkDefinition, shape_inputs: Collection[ITensor]) -> None:
    """Check that there is one program, whose weights can be loaded before a call."""
    fix = "give the input a fixed shape, or leave load=True out"
    why = reason("NL617")
    findings = [
        Finding(
            "NL617",
            f"input {tensor.name!r} is {tensor.type}, and the weights are to be loaded",
            "",
            why,
            fix,
            at=tensor,
        )
        for tensor in network.inputs
        if tensor in shape_inputs or not tensor.type.is_fixed
    ]
    if findings:
        raise NetworkError(*findings)


def _tensor_names(tensors: Iterable[ITensor]) -> dict[str, ITensor]:
    """Tensors by name, those of constants by that of their layer, with ``#number`` appended if the name is taken."""
    names: dict[str, ITensor] = {}
    for tensor in tensors:
        producer = tensor.producer
        name = producer.name if isinstance(producer, IConstantLayer) else tensor.name
        while name in names:
            name = f"{name}#{len(names)}"
        names[name] = tensor
    return names


def checked_bounds(given: Mapping[str, int] | None, network: INetworkDefinition) -> dict[str, int]:
    """The bounds of loops by name, checked, with those of loops that make as many iterations."""
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise TypeError(f"bound is a dict from names of loops to numbers, not {given!r}")
    known = [loop.name for loop in network.loops]
    for name in given:
        if name not in known:
            hint = did_you_mean(str(name), known)
            what = f"the network has no loop {name!r} to bound; it has {listed(known) or 'none'}"
            raise ValueError(what + (hint and f"; {hint}"))
    bounds = {name: whole(0)(f"the bound of {name!r}", number) for name, number in given.items()}
    for loop in network.loops:
        limit = loop.limit(TripLimit.COUNT)
        counted = limit and counted_loop(limit.tensor(0))
        # it makes as many iterations as another one, which was counted
        if counted and counted.name in bounds:
            bounds.setdefault(loop.name, bounds[counted.name])
    return bounds


def _names(constants: list[IConstantLayer]) -> dict[str, IConstantLayer]:
    """The floating-point constants by the name of their layer, with ``#index`` appended if the name is taken."""
    names: dict[str, IConstantLayer] = {}
    taken = {constant.name for constant in constants}
    for layer in constants:
        if layer.outputs[0].type.is_float:
            name = layer.name
            while name in names or (name != layer.name and name in taken):
                name = f"{name}#{layer.index}"
            names[name] = layer
    return names


def _weight(weights: Mapping[str, Any], name: str, tensor: ITensor) -> jax.Array:
    wanted, layer = tensor.type, tensor.producer
    assert layer is not None
    if name not in weights:
        fix = "pass the weights that to_jax returned, or others of their names and shapes"
        raise InputError(layer.finding("NL605", f"weight {name!r} is missing; it is {wanted}", reason("NL605"), fix))
    array = jnp.asarray(weights[name])
    if tuple(array.shape) != wanted.shape:
        what = f"weight {name!r} is {wanted}, and was given the shape {tuple(array.shape)}"
        raise InputError(layer.finding("NL605", what, reason("NL605"), f"give it the shape {wanted.shape}"))
    return array.astype(wanted.dtype)


def _as_declared(network: INetworkDefinition, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs, with 64-bit types restored where JAX's x64 setting had narrowed them before the call."""
    if not isinstance(inputs, Mapping):
        raise TypeError(f"inputs are a dict from names to arrays, not {type(inputs).__name__}")
    declared = {tensor.name: tensor.declared for tensor in network.inputs}
    results = dict(inputs)
    for name, array in results.items():
        wanted = declared.get(name)
        if isinstance(array, jax.Array) and wanted is not None and array.dtype == _narrowed(wanted.dtype):
            results[name] = array.astype(wanted.dtype)
    return results


def _narrowed(dtype: Any) -> Any:
    # what JAX makes of the type outside of its 64-bit setting, in which the caller may be
    with jax.enable_x64(False):
        return jax.dtypes.canonicalize_dtype(dtype)
