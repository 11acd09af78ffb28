"""The networks and layers that one compiled program can hold."""

from netloop.model.graph import ILayer, ITensor, TypeTable
from netloop.model.layers.loop import ILoopOutputLayer
from netloop.model.layers.plugin import IPluginV3Layer
from netloop.model.nest import live_layers
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import Finding, NetworkError, reason
from netloop.values.types import TensorType

USE_COMPILE = "netloop.compile runs it as it is"


def has_program(network: INetworkDefinition, types: TypeTable) -> bool:
    """Whether one program can hold a network; if not, it runs on the host."""
    # JAX has no arguments that are sequences, maps or strings
    takes_arrays = all(tensor.type.is_tensor and not tensor.type.is_string for tensor in network.inputs)
    return takes_arrays and all(fits_program(layer, types) for layer in live_layers(network))


def fits_program(layer: ILayer, types: TypeTable) -> bool:
    """Whether a program can hold a layer: the shapes of its outputs and the values that decide them are known.

    None that reads or makes strings can be in a program.
    """
    if layer.on_host or _has_strings(layer, types):
        return False
    # JAX takes lengths as numbers and not as tracers
    sizes = [tensor for position, tensor in enumerate(layer.inputs) if position in layer.SHAPE_INPUTS and tensor]
    is_fixed = all(_is_fixed(tensor, types) for tensor in layer.outputs)
    return is_fixed and all(types[size].value is not None for size in sizes)


def _has_strings(layer: ILayer, types: TypeTable) -> bool:
    tensor_types = (types.of(tensor) for tensor in (*layer.inputs, *layer.outputs) if tensor is not None)
    return any(isinstance(type_, TensorType) and type_.is_string for type_ in tensor_types)


def _is_fixed(tensor: ITensor | None, types: TypeTable) -> bool:
    type_ = None if tensor is None else types.of(tensor)
    return type_ is None or (isinstance(type_, TensorType) and type_.is_fixed)


def require_program(network: INetworkDefinition, types: TypeTable) -> None:
    """Refuse a network that one program cannot hold.

    Raises:
        NetworkError: an input is no tensor, a layer computes on the host or is not possible for these types, or a shape
            is data-dependent; the last names the layers at which data-dependent shapes begin.
    """
    require_arrays(network)
    on_host = [layer for layer in live_layers(network) if layer.on_host or _has_strings(layer, types)]
    if on_host:
        raise NetworkError(*map(_on_host, on_host))
    impossible = {layer: finding for layer in live_layers(network) if (finding := types.finding(layer)) is not None}
    if impossible:
        raise NetworkError(*(_impossible(layer, finding) for layer, finding in impossible.items()))
    unfixed = [layer for layer in live_layers(network) if not fits_program(layer, types)]
    # the layers behind them have open shapes only because of them
    first = [layer for layer in unfixed if all(_is_fixed(tensor, types) for tensor in layer.type_inputs())]
    if unfixed:
        raise NetworkError(*(_data_dependent(layer, types) for layer in first or unfixed))


def require_arrays(network: INetworkDefinition) -> None:
    """Refuse a network with other inputs than arrays of numbers.

    Raises:
        NetworkError: an input is a sequence, an optional value, a map, or of strings.
    """
    for tensor in network.inputs:
        if not tensor.type.is_tensor or tensor.type.is_string:
            what = f"the input {tensor.name!r} is {tensor.type}, and a pure function takes arrays of numbers"
            raise NetworkError(Finding("NL503", what, why=reason("NL503"), fix=USE_COMPILE, at=tensor))


def _on_host(layer: ILayer) -> Finding:
    if not isinstance(layer, IPluginV3Layer):
        strings = "" if layer.on_host else " with strings"
        what = f"{layer.name!r} is {type(layer).__name__}{strings}, which computes on the host"
        return layer.finding("NL503", what, reason("NL503"), USE_COMPILE)
    what = f"{layer.name!r} is a plugin that computes on the host"
    return layer.finding("NL503", what, reason("NL503"), f"write it as a netloop.JaxPlugin; {USE_COMPILE}")


def _impossible(layer: ILayer, finding: Finding) -> Finding:
    what = f"a branch has {layer.name!r}, which is not possible for these shapes: {finding.what}"
    fix = "fix the input that chooses the branch to a value, as inputs= of load does for a model"
    return layer.finding("NL501", what, "a pure function has both branches", f"{fix}; {USE_COMPILE}")


def _data_dependent(layer: ILayer, types: TypeTable) -> Finding:
    wrong = layer.known_error(types) if isinstance(layer, ILoopOutputLayer) else None
    if wrong is not None:
        return layer.finding("NL501", *wrong)
    return layer.finding(
        "NL501",
        f"{layer.name!r} makes {types[layer.outputs[0]]}, a data-dependent shape",
        reason("NL501"),
        f"compute sizes from constants, add_shape or small integer inputs; {USE_COMPILE}",
    )
