"""Arrays for the inputs of a model."""

import numpy as np
import pytest

import netloop as trt
from netloop.cli.failures import Misuse
from netloop.cli.inputs import arrays_for


def with_inputs(network, *declared):
    for name, dtype, shape in declared:
        network.add_input(name, dtype, shape)
    return network


def test_types_and_shapes_of_random_inputs(network):
    types = [trt.float32, trt.float16, trt.bfloat16, trt.int64, trt.int8, trt.bool, trt.string]
    with_inputs(network, *((dtype.name, dtype, (2, -1)) for dtype in types))
    made = arrays_for(network, [], {dtype.name: (2, 5) for dtype in types}, seed=0)

    assert {name: each.shape for name, each in made.items()} == {dtype.name: (2, 5) for dtype in types}
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
    assert {name: float(each) for name, each in made.items()} == {"x": 1, "y": 2, "z": 3}


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
