"""Indices of any integer type."""

import numpy as np
import pytest

from tests.support.examples import mostly_slow
from tests.support.openvino_models import F, check, constant, load, ops, ov, parameter


@pytest.mark.parametrize("dtype", mostly_slow(3, [np.uint64, np.int16, np.uint8, np.uint32, np.uint16, np.int8]))
@pytest.mark.parametrize("op", ["gather", "gather_nd", "scatter_update", "scatter_elements_update"])
def test_indices_are_integers_of_any_type(op, dtype):
    x, indices, zero = parameter("x", [4]), parameter("i", [2], dtype), constant(np.int64(0))
    pairs = ops.reshape(indices, constant(np.int64([2, 1])), False)
    made = {
        "gather": lambda: ops.gather(x, indices, zero),
        "gather_nd": lambda: ops.gather_nd(x, pairs, 0),
        "scatter_update": lambda: ops.scatter_update(x, indices, constant(F([7, 8])), zero),
        "scatter_elements_update": lambda: ops.scatter_elements_update(x, indices, constant(F([7, 8])), zero),
    }[op]()
    model = ov.Model([ops.result(made)], [x, indices])
    inputs = {"x": F([1, 2, 3, 4]), "i": np.array([1, 3], dtype)}

    (expected,) = ov.Core().compile_model(model, "CPU")(list(inputs.values())).values()

    check(load(model), inputs, expected)
