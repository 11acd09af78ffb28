"""Arrays for the inputs of a model."""

import numpy as np
import pytest

import netloop as trt
from netloop.tools.cli.failures import Misuse
from netloop.tools.cli.inputs import arrays_for
from tests.support.networks import counted, counter, last, mark


def with_inputs(network, *declared):
    for name, dtype, shape in declared:
        network.add_input(name, dtype, shape)
    return network


def test_types_and_shapes_of_random_inputs(network):
    types = [trt.float32, trt.float16, trt.bfloat16, trt.int64, trt.int8, trt.bool, trt.string]
    with_inputs(network, *((dtype.name, dtype, (2, -1)) for dtype in types))
    made = arrays_for(network, [], {dtype.name: (2, 5) for dtype in types}, seed=0)

    assert {name: array.shape for name, array in made.items()} == {dtype.name: (2, 5) for dtype in types}
    assert made["BF16"].dtype == network.inputs[2].type.dtype
    assert set(np.unique(made["INT64"])) == {0, 1}
    assert 0 <= made["FLOAT"].min() < made["FLOAT"].max() <= 1
    assert made["BOOL"].dtype == bool


def test_numbers_are_inputs_too(network):
    with_inputs(network, ("n", trt.int32, ()), ("f", trt.float32, ()))
    made = arrays_for(network, [], {"n": ()}, seed=0)

    assert (made["n"].shape, made["n"].dtype) == ((), np.int32)
    assert (made["f"].shape, made["f"].dtype) == ((), np.float32)


def test_sequence_has_no_random_value(network):
    network.add_sequence_input("s", trt.float32)

    with pytest.raises(Misuse, match=r"input 's' is sequence.*, for which there are no random values"):
        arrays_for(network, [], {}, seed=0)


def test_files_by_name_and_for_the_only_input(network, tmp_path):
    with_inputs(network, ("x", trt.float32, (2,)))
    np.save(tmp_path / "x.npy", np.array([1, 2], np.float32))

    for file in (f"{tmp_path}/x.npy", f"x:{tmp_path}/x.npy"):
        assert arrays_for(network, [file], {}, seed=0)["x"].tolist() == [1, 2]


def test_file_without_a_name_among_several_inputs(network):
    with_inputs(network, ("x", trt.float32, (2,)), ("y", trt.float32, (2,)))

    with pytest.raises(Misuse, match=r"'a.npy' is for the only input, and the model has 'x', 'y'; write NAME:a.npy"):
        arrays_for(network, ["a.npy"], {}, seed=0)


def test_several_files_together(network, tmp_path):
    with_inputs(network, ("x", trt.float32, ()), ("y", trt.float32, ()), ("z", trt.float32, ()))
    np.savez(tmp_path / "a.npz", x=np.float32(1), y=np.float32(2))
    np.save(tmp_path / "z.npy", np.float32(3))
    files = [f"{tmp_path}/a.npz", f"z:{tmp_path}/z.npy"]
    made = arrays_for(network, files, {}, seed=0)

    assert arrays_for(network, [",".join(files)], {}, seed=0) == made  # as trtexec takes them
    assert {name: float(value) for name, value in made.items()} == {"x": 1, "y": 2, "z": 3}


@pytest.mark.parametrize("suffix", [".npz", ".npy"])
@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 no archive", b"\x93NUMPY\x01\x00"])
def test_damaged_file(network, tmp_path, suffix, content):
    with_inputs(network, ("x", trt.float32, ()))
    file = tmp_path / f"a{suffix}"
    file.write_bytes(content)

    with pytest.raises(Misuse, match=f"is not an {suffix} file, or holds objects of Python"):
        arrays_for(network, [str(file)], {}, seed=0)


def test_objects_are_not_unpickled(network, tmp_path):
    with_inputs(network, ("x", trt.float32, ()))
    np.save(tmp_path / "a.npy", np.array([{}]), allow_pickle=True)

    with pytest.raises(Misuse, match="holds objects of Python"):
        arrays_for(network, [f"{tmp_path}/a.npy"], {}, seed=0)


def test_name_of_a_file_may_have_a_comma(network, tmp_path):
    with_inputs(network, ("x", trt.float32, ()))
    np.save(tmp_path / "a,b.npy", np.float32(3))

    assert arrays_for(network, [f"{tmp_path}/a,b.npy"], {}, seed=0) == {"x": 3}


# ---------------------------------------------------------------------------- values and ranges


def test_values_and_files_together_and_the_others_random(network, tmp_path, capsys):
    with_inputs(
        network, ("x", trt.float32, (2,)), ("limit", trt.int64, ()), ("ids", trt.int64, (3,)), ("y", trt.bool, ())
    )
    np.save(tmp_path / "x.npy", np.array([1, 2], np.float32))
    for given in (
        [f"x={tmp_path}/x.npy", "limit=20", "ids=[1,2,3]"],
        [f"x:{tmp_path}/x.npy,limit=20,ids=[1,2,3]"],
        [f"'x'={tmp_path}/x.npy,ids=[1,2,3]", "limit=20"],
    ):
        made = arrays_for(network, given, {}, seed=0)

        assert {name: value.tolist() for name, value in made.items() if name != "y"} == {
            "x": [1, 2],
            "limit": 20,
            "ids": [1, 2, 3],
        }
        assert made["y"].dtype == bool
        assert capsys.readouterr().err == "note: random inputs: 'y'; --inputs y=... gives one\n"


def test_value_replaces_that_of_a_file_with_all_inputs(network, tmp_path):
    with_inputs(network, ("x", trt.float32, ()), ("n", trt.int64, ()))
    np.savez(tmp_path / "a.npz", x=np.float32(1), n=np.int64(2))

    assert arrays_for(network, [f"{tmp_path}/a.npz", "n=5"], {}, seed=0) == {"x": 1, "n": 5}


def test_file_with_arrays_by_name_leaves_nothing_random(network, tmp_path):
    with_inputs(network, ("x", trt.float32, ()), ("n", trt.int64, ()))
    np.savez(tmp_path / "a.npz", x=np.float32(1))

    assert [*arrays_for(network, [f"{tmp_path}/a.npz"], {}, seed=0)] == ["x"]


def test_number_fills_the_shape_that_is_given(network):
    with_inputs(network, ("x", trt.float32, (-1, 2)))

    assert arrays_for(network, ["x=3"], {"x": (3, 2)}, seed=0)["x"].tolist() == [[3, 3]] * 3
    assert arrays_for(network, ["x=3"], {}, seed=0)["x"].tolist() == [[3, 3]]
    with pytest.raises(Misuse, match="--shapes has 'x', and --inputs has a list for it"):
        arrays_for(network, ["x=[[3,3]]"], {"x": (3, 2)}, seed=0)


def test_unknown_names_have_a_hint(network):
    with_inputs(network, ("limit", trt.int64, ()))
    for argument, given in (("--inputs", (["limits=3"], {}, 0)), ("--range", ([], {}, 0, [("limits", (0, 1))]))):
        with pytest.raises(Misuse, match=f"{argument} has 'limits', which is no input; .*; did you mean 'limit'"):
            arrays_for(network, *given)


def test_random_numbers_are_in_their_ranges_with_both_ends(network):
    with_inputs(
        network, *((name, dtype, (200,)) for name, dtype in (("n", trt.int64), ("x", trt.float32), ("u", trt.uint8)))
    )
    made = arrays_for(network, [], {}, 0, [("n", (-1, 2)), ("x", (-5.0, 5)), ("u", (250, 255))])

    assert set(made["n"].tolist()) == {-1, 0, 1, 2}
    assert set(made["u"].tolist()) == {*range(250, 256)}
    assert -5 <= made["x"].min() < -4
    assert 4 < made["x"].max() <= 5


def test_range_without_a_name_is_for_all_others(network):
    with_inputs(network, ("n", trt.int64, (50,)), ("m", trt.int64, (50,)))
    made = arrays_for(network, [], {}, 0, [("", (7, 8)), ("m", (1, 1))])

    assert set(made["n"].tolist()) == {7, 8}
    assert set(made["m"].tolist()) == {1}


@pytest.mark.parametrize(
    ("dtype", "limits", "says"),
    [
        (trt.int64, (0.5, 1), r"input 'x' is int64\[2\], and --range has 0.5:1 for it"),
        (trt.uint8, (0, 256), "--range has 0:256 for it"),
        (trt.bool, (0, 2), "--range has 0:2 for it"),
        (trt.string, (0, 1), "--range has numbers for it"),
    ],
)
def test_range_that_does_not_fit_the_type(network, dtype, limits, says):
    with_inputs(network, ("x", dtype, (2,)))
    with pytest.raises(Misuse, match=says):
        arrays_for(network, [], {}, 0, [("x", limits)])


def test_range_of_an_input_that_is_given(network):
    with_inputs(network, ("x", trt.float32, (2,)))
    with pytest.raises(Misuse, match="--range is for random inputs, and --inputs has their numbers"):
        arrays_for(network, ["x=1"], {}, 0, [("x", (0, 1))])


def test_shape_of_an_input_that_a_file_has(network, tmp_path):
    with_inputs(network, ("x", trt.float32, (-1,)), ("y", trt.float32, (-1,)))
    np.save(tmp_path / "x.npy", np.zeros(2, np.float32))
    with pytest.raises(Misuse, match="--shapes are for random inputs"):
        arrays_for(network, [f"x={tmp_path}/x.npy"], {"x": (2,)}, 0)


# ---------------------------------------------------------------------------- trip counts


def test_input_that_a_loop_counts_to_lets_it_run_and_a_note_says_so(network, capsys):
    loop = counted(network, network.add_input("limit", trt.int64, ()))
    mark(network, y=last(loop, counter(network, loop)))

    assert arrays_for(network, [], {}, 0)["limit"] == 64
    said = "note: limit=64 decides how often a loop runs; --inputs limit=... gives another number\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("name", ["limit", ""])
def test_range_is_for_inputs_that_a_loop_counts_to_as_well(network, name, capsys):
    loop = counted(network, network.add_input("limit", trt.int64, ()))
    mark(network, y=last(loop, counter(network, loop)))

    assert arrays_for(network, [], {}, 0, [(name, (7, 7))])["limit"] == 7
    assert arrays_for(network, ["limit=3"], {}, 0)["limit"] == 3
    assert capsys.readouterr().err == ""


def test_floats_of_eight_bits_are_random_floats(network):
    with_inputs(network, ("x", trt.fp8, (50,)))
    made = arrays_for(network, [], {}, 0, [("x", (-2.0, 2.0))])["x"].astype(np.float32)

    assert -2 <= made.min() < 0 < made.max() <= 2
    assert len(set(made.tolist())) > 4


def test_default_of_an_input_can_be_replaced(network):
    x = network.add_input("x", trt.float32, (2,))
    constant = network.add_constant((2,), np.float32([1, 2]))
    constant.name = constant.get_output(0).name = "w"
    network.mark_output(network.add_elementwise(x, constant.get_output(0), trt.ElementWiseOperation.SUM).get_output(0))
    with pytest.raises(Misuse, match="no input"):
        arrays_for(network, ["w=[3,4]"], {}, seed=0)

    constant.input_shape = (2,)
    arrays = arrays_for(network, ["w=[3,4]"], {}, seed=0)
    assert [*arrays] == ["w", "x"]
    assert arrays["w"].tolist() == [3, 4]
