import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop
from netloop.model.layers.collective import REDUCTIONS, ROOTED, IDistCollectiveLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import LayerError, NetworkError
from netloop.values.enums import CollectiveOperation, DataType, ReduceOperation
from netloop.values.types import TensorType
from tests.support.devices import assert_allclose
from tests.support.laws import Case, check_laws, refuses

FLOAT = DataType.FLOAT
SUM, PROD, MAX, MIN, AVG, NONE = (
    ReduceOperation.SUM,
    ReduceOperation.PROD,
    ReduceOperation.MAX,
    ReduceOperation.MIN,
    ReduceOperation.AVG,
    ReduceOperation.NONE,
)
ALL_REDUCE, REDUCE, REDUCE_SCATTER = (
    CollectiveOperation.ALL_REDUCE,
    CollectiveOperation.REDUCE,
    CollectiveOperation.REDUCE_SCATTER,
)
ALL_GATHER, GATHER, SCATTER = CollectiveOperation.ALL_GATHER, CollectiveOperation.GATHER, CollectiveOperation.SCATTER
BROADCAST, ALL_TO_ALL = CollectiveOperation.BROADCAST, CollectiveOperation.ALL_TO_ALL


def f32(*shape):
    return TensorType(np.dtype(np.float32), shape)


def i32(*shape):
    return TensorType(np.dtype(np.int32), shape)


def collective(operation, reduction=SUM, root=0, ranks=1, **named):
    return IDistCollectiveLayer(operation=operation, reduce_operation=reduction, root=root, num_ranks=ranks, **named)


X = np.float32([[1, 2], [3, 4], [5, 6], [7, 8]])

ALONE = [
    Case(f"{operation.name}, {np.dtype(dtype)}", collective(operation), (X.astype(dtype),), X.astype(dtype))
    for operation in CollectiveOperation
    for dtype in (np.float32, np.int64)
]


@pytest.mark.parametrize("case", ALONE, ids=str)
def test_one_rank_keeps_its_tensor(case):
    check_laws(case)


def test_every_reduction_has_a_row():
    assert set(REDUCTIONS) == set(ReduceOperation) - {NONE}


# ---------------------------------------------------------------------------- ranks, played by a mapped axis

A, B = np.float32([[1, -2], [3, 4]]), np.float32([[10, 20], [-30, 40]])
BOTH = np.stack([A, B])


def on_ranks(layer, x, axis="ranks"):
    return np.asarray(jax.vmap(layer.lower, axis_name=axis)(x))


@pytest.mark.parametrize(
    ("operation", "reduction", "root", "expected"),
    [
        (ALL_REDUCE, SUM, -1, [A + B, A + B]),
        (ALL_REDUCE, PROD, -1, [A * B, A * B]),
        (ALL_REDUCE, MAX, -1, [np.maximum(A, B)] * 2),
        (ALL_REDUCE, MIN, -1, [np.minimum(A, B)] * 2),
        (ALL_REDUCE, AVG, -1, [(A + B) / 2] * 2),
        (REDUCE_SCATTER, SUM, -1, [(A + B)[:1], (A + B)[1:]]),
        (REDUCE_SCATTER, PROD, -1, [(A * B)[:1], (A * B)[1:]]),
        (REDUCE_SCATTER, AVG, -1, [(A + B)[:1] / 2, (A + B)[1:] / 2]),
        (ALL_GATHER, NONE, -1, [np.concatenate([A, B])] * 2),
        (BROADCAST, NONE, 0, [A, A]),
        (BROADCAST, NONE, 1, [B, B]),
        (SCATTER, NONE, 0, [A[:1], A[1:]]),
        (SCATTER, NONE, 1, [B[:1], B[1:]]),
        (ALL_TO_ALL, NONE, -1, [[A[0], B[0]], [A[1], B[1]]]),
    ],
)
def test_ranks_exchange_their_tensors(operation, reduction, root, expected):
    layer = collective(operation, reduction, root, ranks=2)

    made = on_ranks(layer, BOTH)

    assert_allclose(made, np.array(expected))
    assert layer.infer(f32(2, 2)) == f32(*made.shape[1:])


@pytest.mark.parametrize("root", [0, 1])
def test_the_root_gets_what_is_reduced(root):
    assert on_ranks(collective(REDUCE, SUM, root, ranks=2), BOTH)[root].tolist() == (A + B).tolist()


@pytest.mark.parametrize("root", [0, 1])
def test_the_root_gets_what_is_gathered(root):
    made = on_ranks(collective(GATHER, NONE, root, ranks=2), BOTH)

    assert made[root].tolist() == [*A.tolist(), *B.tolist()]


@pytest.mark.parametrize("operation", CollectiveOperation)
@pytest.mark.parametrize("dtype", [np.int8, np.float16, jnp.bfloat16])
def test_element_type_is_kept(operation, dtype):
    made = on_ranks(collective(operation, ranks=2), BOTH.astype(dtype))

    assert made.dtype == dtype


def test_half_numbers_are_reduced_in_float32():
    x = np.float16([[60000], [60000], [-60000]])

    assert on_ranks(collective(ALL_REDUCE, SUM, ranks=3), x).tolist() == [[60000]] * 3


@pytest.mark.parametrize("operation", CollectiveOperation)
def test_empty_tensors_are_exchanged(operation):
    layer = collective(operation, ranks=2)

    made = on_ranks(layer, np.zeros((2, 0, 3), np.float32))

    assert made.shape[1:] == layer.infer(f32(0, 3)).shape


def test_metadata_names_the_axis():
    layer = collective(ALL_REDUCE, ranks=2)
    layer.metadata = "devices"

    assert on_ranks(layer, BOTH, axis="devices")[0].tolist() == (A + B).tolist()


def test_sum_over_ranks_has_a_derivative():
    layer = collective(ALL_REDUCE, ranks=2)

    def total(x):
        return (jax.vmap(layer.lower, axis_name="ranks")(x)[0] ** 2).sum()

    assert_allclose(jax.jit(jax.grad(total))(BOTH), np.stack([2 * (A + B)] * 2))


# ---------------------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("layer", "x", "match"),
    [
        (collective(ALL_REDUCE, ranks=0), f32(2), "num_ranks is 0, but must be positive"),
        (collective(ALL_REDUCE, ranks=2, groups=(0,)), f32(2), "groups are (0,), but there are 2 ranks"),
        (collective(ALL_REDUCE, ranks=2, groups=(1, 0)), f32(2), "groups are (1, 0), but there are 2 ranks"),
        (collective(ALL_REDUCE, NONE, ranks=2), f32(2), "ALL_REDUCE has the reduction NONE"),
        (collective(ALL_REDUCE, AVG), i32(2), "AVG does not reduce int32[2]"),
        (collective(REDUCE), TensorType(np.dtype(np.bool_), (2,)), "SUM does not reduce bool[2]"),
        (collective(ALL_GATHER), f32(), "ALL_GATHER needs an axis 0, but the input is float32[]"),
        (collective(SCATTER, ranks=2), f32(3), "axis 0 has 3 elements, which cannot be divided evenly among 2 ranks"),
        (
            collective(ALL_TO_ALL, ranks=2),
            f32(3),
            "axis 0 has 3 elements, which cannot be divided evenly among 2 ranks",
        ),
    ],
)
def test_what_ranks_cannot_exchange_is_refused(layer, x, match):
    refuses(layer, x, match=match)


@pytest.mark.parametrize("operation", sorted(ROOTED, key=int))
@pytest.mark.parametrize("root", [-1, 2])
def test_root_is_a_rank(operation, root):
    refuses(collective(operation, root=root, ranks=2), f32(2), match=f"the root of {operation.name} is {root}")


@pytest.mark.parametrize(
    ("operation", "length"), [(ALL_REDUCE, 4), (ALL_GATHER, 8), (GATHER, 8), (SCATTER, 2), (REDUCE_SCATTER, 2)]
)
def test_lengths_follow_from_the_number_of_ranks(operation, length):
    layer = collective(operation, ranks=2, groups=(0, 1))

    assert layer.infer(f32(4, -1)) == f32(length, -1)
    assert layer.infer(f32(-1, 3)) == f32(-1, 3)


# ---------------------------------------------------------------------------- networks


def network_of(*arguments):
    network = INetworkDefinition()
    x = network.add_input("x", FLOAT, (2, 2))
    layer = network.add_dist_collective(x, *arguments)
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    return network, layer


def test_reference_runs_one_rank():
    network, _ = network_of(ALL_REDUCE, SUM, None, None)

    assert netloop.evaluate(network, {"x": A})["y"].tolist() == A.tolist()
    assert netloop.compile(network)({"x": A})["y"].tolist() == A.tolist()


def test_reference_refuses_more_ranks():
    with pytest.raises(LayerError, match="the network runs on 2 ranks"):
        collective(ALL_REDUCE, ranks=2).evaluate(A)


def test_setting_the_number_of_ranks_changes_the_shape():
    _, layer = network_of(ALL_GATHER, None, -1, [])
    before = layer.get_output(0).shape

    layer.num_ranks = 3

    assert (before, layer.get_output(0).shape) == ((2, 2), (6, 2))


def test_engine_has_no_ranks():
    network, layer = network_of(ALL_GATHER, NONE, -1, [])
    layer.num_ranks = 2

    with pytest.raises(NetworkError, match="runs on 2 ranks, but there is no axis 'ranks'"):
        netloop.compile(network)


def test_pure_function_runs_on_ranks():
    network, layer = network_of(ALL_GATHER, NONE, -1, [0, 1])
    layer.num_ranks = 2
    function, weights = netloop.to_jax(network)

    made = jax.vmap(lambda x: function(weights, {"x": x})["y"], axis_name="ranks")(BOTH)

    np.testing.assert_array_equal(made, np.stack([np.concatenate([A, B])] * 2))


def test_axis_has_as_many_places_as_there_are_ranks():
    network, layer = network_of(ALL_GATHER, NONE, -1, [])
    layer.num_ranks = 3
    function, weights = netloop.to_jax(network)

    with pytest.raises(NetworkError, match="runs on 3 ranks, but the axis 'ranks' has 2"):
        jax.vmap(lambda x: function(weights, {"x": x})["y"], axis_name="ranks")(BOTH)


def test_a_copy_keeps_the_ranks():
    network, layer = network_of(SCATTER, None, 1, [0, 1])
    layer.num_ranks = 2

    twin = network.copy().get_layer(0)

    assert (twin.operation, twin.root, twin.groups, twin.num_ranks) == (SCATTER, 1, (0, 1), 2)
