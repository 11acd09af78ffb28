"""Random networks of what both OpenVINO and its CPU plugin have."""

from random import Random

import netloop as trt
from tests.support.onnx_exportable import Exportable
from tests.support.strategies import Grown

NOT_IN_OPENVINO = {trt.e4m3fnuz, trt.e5m2fnuz}
NOT_IN_PLUGIN = {trt.fp8, trt.e5m2}
"""The types that no loop of the plugin passes on."""

NOT_SAVED = {
    "determine", "cumulate", "read_bits", "transform", "list_tensors", "split_tensor", "wrap_tensor",
}  # fmt: skip
"""The recipes of what OpenVINO has no operators for, or its plugin no transforms of more than there is."""


class Expressible(Exportable):
    """Grows networks that are saved as OpenVINO models."""

    dtypes = [each for each in Exportable.dtypes if each not in NOT_IN_OPENVINO | NOT_IN_PLUGIN]
    recipes = {recipe: kinds for recipe, kinds in Exportable.recipes.items() if recipe.__name__ not in NOT_SAVED}


def grown(seed: int) -> Grown:
    """The random network of a seed."""
    chance = Random(seed)
    return Expressible(chance, chance.randint(1, 3), chance.randint(0, 40)).grow()
