"""Random networks that OpenVINO can express and its CPU plugin computes."""

from random import Random

import netloop as trt
from tests.support.onnx_exportable import Exportable
from tests.support.strategies import Grown

NOT_IN_OPENVINO = {trt.e4m3fnuz, trt.e5m2fnuz}
NOT_IN_PLUGIN = {trt.fp8, trt.e5m2}
"""The types that loops of the plugin do not pass on."""

NOT_SAVED = {
    "determine", "cumulate", "read_bits", "transform", "list_tensors", "split_tensor", "wrap_tensor",
    "spell",
}  # fmt: skip
"""The recipes of operators that OpenVINO lacks, and of transforms longer than their input, which the plugin lacks."""


class Expressible(Exportable):
    """Grows networks that can be exported to OpenVINO."""

    dtypes = [dtype for dtype in Exportable.dtypes if dtype not in NOT_IN_OPENVINO | NOT_IN_PLUGIN]
    recipes = [recipe for recipe in Exportable.recipes if recipe.__name__ not in NOT_SAVED]


def grown(seed: int) -> Grown:
    """The random network of a seed."""
    chance = Random(seed)
    return Expressible(chance, chance.randint(1, 3), chance.randint(0, 40)).grow()
