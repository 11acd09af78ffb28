import copy
import pickle
import re

import jax.numpy as jnp
import numpy as np
import pytest

from netloop.values.dims import Dims, Dims2, Dims3, Dims4, DimsHW, Permutation, volume


def test_dims_is_a_tuple_of_ints():
    assert tuple(Dims([2, np.int64(-1), 3])) == (2, -1, 3)


def test_dims_is_printed_as_a_tuple():
    assert [str(Dims(shape)) for shape in ((), (3,), (1, 2))] == ["()", "(3,)", "(1, 2)"]


@pytest.mark.parametrize(("shape", "elements"), [((), 1), (Dims((2, 3)), 6), ([4, 0], 0), ((-1, 3), -3)])
def test_volume_is_the_product_of_the_lengths(shape, elements):
    assert volume(shape) == elements


@pytest.mark.parametrize("other", [(1, 2), [1, 2], Dims((1, 2)), Dims2(1, 2)])
def test_dims_equals_any_sequence_of_the_same_lengths(other):
    assert Dims((1, 2)) == other


@pytest.mark.parametrize("other", [(1,), [2, 1], "12", None, 3])
def test_dims_differs_from_everything_else(other):
    assert Dims((1, 2)) != other


def test_equal_dims_have_equal_hashes():
    assert {Dims((1, 2)): "here"}[Dims([1, 2])] == "here"


def test_dims_counts_from_the_end():
    assert Dims((4, 5, 6))[-1] == 6


def test_slice_of_dims_is_a_tuple():
    assert type(Dims((4, 5, 6))[1:]) is tuple


def test_permutation_does_not_change_in_place():
    with pytest.raises(TypeError, match=re.escape("change list(order)")):
        Permutation((1, 0))[0] = 2


def changed(cls, *numbers):
    """Dims that had other numbers before."""
    made = cls([9] * len(numbers))
    for index, number in enumerate(numbers):
        made[index] = number
    return made


OPERATIONS = {
    "tuple": tuple,
    "list": list,
    "str": str,
    "repr": repr,
    "len": len,
    "unpacked": lambda dims: [*dims],
    "arguments": lambda dims: (lambda *numbers: numbers)(*dims),
    "first": lambda dims: dims[0],
    "last": lambda dims: dims[-1],
    "slice": lambda dims: dims[1:],
    "sum": lambda dims: (*dims, 1),
    "sum of a tuple": lambda dims: (1, *dims, *dims),
    "tuple before": lambda dims: (1, *dims),
    "product": lambda dims: (dims * 2, 2 * dims),
    "in": lambda dims: (3 in dims, 9 in dims),
    "index": lambda dims: dims.index(3),
    "count": lambda dims: (dims.count(3), dims.count(9)),
    "order": lambda dims: [dims < (2, 4), dims <= (2, 3), dims > (2, 3), dims >= (2, 3), dims < (2, 4), dims > (1, 2)],
    "equal": lambda dims: (dims == (2, 3), dims == (2, 3), dims != [2, 3], dims == [2, 3], dims == (9, 9)),
    "hash": hash,
    "volume": volume,
    "max": max,
    "reversed": lambda dims: list(reversed(dims)),
    "sorted": sorted,
    "copy": lambda dims: (copy.copy(dims), copy.deepcopy(dims)),
    "pickle": lambda dims: pickle.loads(pickle.dumps(dims)),
    "Dims": Dims,
    "numpy": lambda dims: (np.zeros(dims).shape, np.arange(6).reshape(dims).shape, np.array(dims).tolist()),
    "jax": lambda dims: jnp.zeros(dims).shape,
    "text": lambda dims: ("%s" % dims, f"{dims}", "%s %s" % (dims, 1)),  # noqa: UP031 (the operator is tested)
    "match": lambda dims: [rest for first, *rest in [dims]],
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("cls", [Dims, Dims2, DimsHW])
def test_changed_dims_are_as_dims_made_so(cls, name):
    assert OPERATIONS[name](changed(cls, 2, 3)) == OPERATIONS[name](cls((2, 3))) == OPERATIONS[name](Dims((2, 3)))


def test_slice_changes_in_place():
    dims = Dims((1, 2, 3))
    dims[:2] = [4, np.int64(5)]
    dims[-1] = -1

    assert dims == (4, 5, -1)
    assert dims[1] == 5
    assert type(dims[1]) is int


def test_named_lengths_follow_a_change():
    dims = DimsHW(1, 2)
    dims[0] = 7
    dims.w = 5

    assert (dims.h, dims.w) == (7, 5)
    dims.h = 6
    assert dims == (6, 5)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda dims: dims.__setitem__(2, 1), IndexError),
        (lambda dims: dims.__setitem__(0, 1.5), TypeError),
        (lambda dims: dims.__setitem__(0, 1 << 63), ValueError),
        (lambda dims: dims.__setitem__(slice(0, 1), (1, 2)), ValueError),
    ],
)
def test_invalid_change_is_refused_and_changes_nothing(change, error):
    dims = Dims((1, 2))
    with pytest.raises(error):
        change(dims)

    assert dims == (1, 2)


def test_key_of_a_dict_does_not_change():
    dims = Dims((1, 2))
    kept = {dims: "here"}
    with pytest.raises(TypeError, match=re.escape("cannot be changed in place; change list(dims)")):
        dims[0] = 3
    free = Dims(dims)
    free[0] = 3

    assert kept == {(1, 2): "here"}
    assert free == (3, 2)


def test_dims_without_a_shape_is_that_of_a_scalar():
    assert Dims() == ()


def test_dims_has_at_most_eight_axes():
    assert len(Dims([1] * 8)) == Dims.MAX_DIMS
    with pytest.raises(ValueError, match="a shape has at most 8 axes, not 9"):
        Dims([1] * 9)


@pytest.mark.parametrize("shape", ["12", b"12", 5, None])
def test_dims_takes_nothing_but_a_sequence(shape):
    with pytest.raises(TypeError, match="Dims takes a sequence of ints, not"):
        Dims(shape)


@pytest.mark.parametrize("shape", [(1.0,), ("1",), (None,)])
def test_dims_takes_nothing_but_ints(shape):
    with pytest.raises(TypeError):
        Dims(shape)


@pytest.mark.parametrize("cls", [Dims2, Dims3, Dims4, DimsHW])
def test_dims_of_fixed_length_checks_it(cls):
    with pytest.raises(ValueError, match=f"{cls.__name__} has {len(cls())} numbers, not 1"):
        cls([1])


@pytest.mark.parametrize("made", [DimsHW(3, 4), DimsHW([3, 4]), DimsHW(h=3, w=4), DimsHW(3, w=4), DimsHW(shape=(3, 4))])
def test_lengths_come_as_a_sequence_or_one_by_one(made):
    assert (made.h, made.w) == (3, 4)


@pytest.mark.parametrize(("cls", "zeros"), [(Dims2, (0, 0)), (Dims3, (0, 0, 0)), (Dims4, (0, 0, 0, 0))])
def test_dims_of_fixed_length_starts_with_zeros(cls, zeros):
    assert cls() == zeros


@pytest.mark.parametrize("named", [{"h": 3}, {"h": 3, "depth": 4}, {"dim0": 3, "dim1": 4}])
def test_dims_takes_no_other_names(named):
    with pytest.raises(TypeError, match="DimsHW takes h, w, not"):
        DimsHW(**named)


def test_dims_takes_its_lengths_as_one_argument():
    with pytest.raises(TypeError, match="Dims takes a sequence of ints"):
        Dims(1, 2)


def test_copy_of_dims_is_of_its_class():
    assert copy.deepcopy(DimsHW(3, 4)).w == 4


def test_permutation_is_a_tuple_of_axes():
    assert Permutation(np.array([1, 0])) == (1, 0)
