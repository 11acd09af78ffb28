"""The passes that are forms of lowering: they rewrite no network, and lowering asks whether they are allowed."""

from enum import StrEnum


class LoweringForm(StrEnum):
    """A form of lowering that a pass of this name allows."""

    WEIGHT_FOLDING = "weight_folding"
    LOOP_FISSION = "loop_fission"
    IF_CONVERSION = "if_conversion"
    LOOP_UNROLLING = "loop_unrolling"
