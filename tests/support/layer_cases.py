"""The cases of all layers' tests, as networks of one layer each."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import numpy as np

import netloop as trt
import tests.model.layers
from netloop.values.types import data_type
from tests.support.laws import Case


def _found(value: Any) -> Iterator[Case]:
    if isinstance(value, Case):
        yield value
    elif isinstance(value, dict):
        yield from (case for element in value.values() for case in _found(element))
    elif isinstance(value, list | tuple):
        yield from (case for element in value for case in _found(element))


def all_cases() -> list[Case]:
    """All cases in the tables of ``tests/model/layers``, without duplicates."""
    modules = [
        importlib.import_module(f"tests.model.layers.{module.name}")
        for module in pkgutil.iter_modules(tests.model.layers.__path__)
    ]
    cases = [case for module in modules for value in vars(module).values() for case in _found(value)]
    return list({id(case): case for case in cases}.values())


def network_of(case: Case, dynamic: bool = False) -> tuple[trt.INetworkDefinition, dict[str, np.ndarray]]:
    """Return a network of the layer of a case, and arrays for its inputs. Inputs that determine shapes are constants.

    Args:
        case: the case.
        dynamic: whether the inputs have unknown dims.
    """
    network = trt.INetworkDefinition()
    return network, add_case(network, case, dynamic)


def add_case(
    network: trt.INetworkDefinition, case: Case, dynamic: bool = False, before: str = ""
) -> dict[str, np.ndarray]:
    """Add the layer of a case to a network, with inputs named ``x0`` ... after a prefix and outputs named ``y0`` ...

    Returns:
        Arrays for its inputs.
    """
    tensors, arrays = [], {}
    for position, array in enumerate(case.inputs):
        if array is None:
            tensors.append(None)
        elif position in case.layer.SHAPE_INPUTS:
            tensors.append(network.add_constant(array.shape, np.ascontiguousarray(array)).get_output(0))
        else:
            arrays[f"{before}x{position}"] = array
            shape = [-1] * array.ndim if dynamic else array.shape
            tensors.append(network.add_input(f"{before}x{position}", data_type(array.dtype), shape))
    layer = network.add(case.fresh_layer(), tensors)
    for position, output in enumerate(layer.outputs):
        output.name = f"{before}y{position}"
        network.mark_output(output)
    return arrays
