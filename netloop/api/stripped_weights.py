"""Weights that a plan leaves out: a weight-stripped plan is refitted after it is loaded."""

from collections.abc import Iterable

from netloop.api.engine_config import ISerializationConfig
from netloop.api.enums import SerializationFlag
from netloop.model.layers.sources import IConstantLayer
from netloop.values.types import LARGEST_KNOWN_VALUE


def strippable(refittable: Iterable[IConstantLayer]) -> list[IConstantLayer]:
    """The constants that a plan may leave out: refittable, and too large for their values to decide a type."""
    return [constant for constant in refittable if constant.weights.nbytes > LARGEST_KNOWN_VALUE]


def stripped(
    config: ISerializationConfig,
    constants: Iterable[IConstantLayer],
    refittable: Iterable[IConstantLayer],
    absent: Iterable[IConstantLayer],
) -> list[IConstantLayer]:
    """The constants that a plan leaves out: those that EXCLUDE_WEIGHTS asks for, and those ``absent`` in the engine."""
    excluded = strippable(refittable) if config.get_flag(SerializationFlag.EXCLUDE_WEIGHTS) else []
    left_out = {*excluded, *absent}
    return [constant for constant in constants if constant in left_out]
