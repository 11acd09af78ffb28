"""Sliding windows of operators without a layer that checks them."""

import pytest

from netloop.formats.shared.windows import Sliding
from netloop.values.diagnostics import LayerError


@pytest.mark.parametrize(("strides", "dilations"), [((1, 0), (1, 1)), ((1, 1), (-1, 1))])
def test_strides_and_dilations_are_positive(strides, dilations):
    with pytest.raises(LayerError, match="must be positive"):
        Sliding(strides, dilations, (0, 0), (0, 0))
