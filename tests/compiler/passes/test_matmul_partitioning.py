"""Products of few rows are computed in parts."""

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.passes import matmul_partitioning as parts
from netloop.model.nest import live_layers
from tests.support.devices import assert_allclose, only_on_cpus
from tests.support.networks import combine, constant, counted, last, mark, stacked
from tests.support.pass_checks import improved

pytestmark = only_on_cpus("the pass is not used elsewhere")

NONE, TRANSPOSE = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE


@pytest.fixture(autouse=True)
def two_cores_of_little_memory(monkeypatch):
    monkeypatch.setattr("netloop.compiler.passes.weight_prepacking.MIN_ELEMENTS", 1)
    monkeypatch.setattr(parts, "PART_ELEMENTS", 12)
    monkeypatch.setattr(parts, "CACHED_ELEMENTS", 71)
    monkeypatch.setattr(parts, "MAX_ELEMENTS", 72)
    monkeypatch.setattr(parts, "MAX_ELEMENTS_ONE_ROW", 108)
    monkeypatch.setattr(parts, "cores", lambda: 2)


def chain(rows=2, width=12, op=NONE, of_state=True, stacks=False):
    """y: the sum h of x[3, rows, 6] and h W V, with W of [6, width]; or of x W V; or h W V stacked."""
    network, random = trt.INetworkDefinition(), np.random.default_rng(2)
    loop = counted(network, 3)
    x = loop.add_iterator(network.add_input("x", trt.float32, (3, rows, 6))).get_output(0)
    state = loop.add_recurrence(constant(network, np.zeros((rows, 6), np.float32)))
    h = combine(network, state.get_output(0), x)
    matrices = (6, width) if op is NONE else (width, 6), (width, 6)
    first, second = (constant(network, random.standard_normal(matrix).astype(np.float32) / 9) for matrix in matrices)
    wide = network.add_matrix_multiply(h if of_state else x, NONE, first, op).get_output(0)
    made = network.add_matrix_multiply(wide, NONE, second, NONE).get_output(0)
    state.set_input(1, h if stacks else combine(network, made, h))
    return mark(
        network, y=stacked(loop, made, constant(network, 3, np.int32)) if stacks else last(loop, state.get_output(0))
    )


def part_counts(network):
    """The number of parts of each product that is split."""
    notes = improved(network, ["matmul_partitioning"]).notes
    return [int(note.what.split()[-2]) for note in notes]


@pytest.mark.parametrize("op", [NONE, TRANSPOSE])
@pytest.mark.parametrize("rows", [1, 2, 8])
def test_product_of_few_rows_is_computed_in_parts(rows, op):
    network = chain(rows, op=op)
    inputs = {"x": np.random.default_rng(1).standard_normal((3, rows, 6)).astype(np.float32)}
    wanted = trt.evaluate(network, inputs)["y"]
    better = improved(network, ["matmul_partitioning"]).network

    assert part_counts(network) == ([2, 2] if rows == 1 else [6, 6])
    assert_allclose(trt.evaluate(better, inputs)["y"], wanted, rtol=1e-5)
    assert_allclose(np.asarray(trt.compile(network)(inputs)["y"]), wanted, rtol=1e-5)


def test_parts_of_several_rows_lie_side_by_side_in_each_row():
    live = live_layers(improved(chain(rows=4), ["matmul_partitioning"]).network)
    products = [layer for layer in live if isinstance(layer, trt.IMatrixMultiplyLayer)]

    assert [layer.get_output(0).shape for layer in products] == [(4, 2)] * 6 + [(4, 1)] * 6


@pytest.mark.parametrize(
    "named",
    [{"rows": 9}, {"width": 11}, {"rows": 1, "width": 5}, {"of_state": False}, {"stacks": True}],
    ids=str,
)
def test_other_products_stay_whole(named):
    assert part_counts(chain(**named)) == []


@pytest.mark.parametrize(("rows", "largest"), [(1, 18), (2, 12)])
def test_products_with_large_matrices_stay_whole(rows, largest):
    assert [len(part_counts(chain(rows, width))) for width in (largest, largest + 6)] == [2, 0]


def test_one_core_computes_whole_products(monkeypatch):
    monkeypatch.setattr(parts, "cores", lambda: 1)

    assert part_counts(chain()) == []


def test_cores_are_those_that_this_process_may_use():
    assert parts.cores() >= 1
