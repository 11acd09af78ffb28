"""Outputs as lines and as files."""

import gc

import jax.numpy as jnp
import numpy as np
import pytest

from netloop.tools.cli import outputs


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (np.float32(1.5), "y: float32[] = 1.5"),
        (np.array([1, 2]), "y: int64[2] = 1, 2"),
        (np.zeros((0, 3), np.int32), "y: int32[0,3]"),
        (np.arange(10, dtype=np.float32), "y: float32[10], from 0 to 9, mean 4.5"),
        (np.array([*range(9), np.nan, np.inf]), "y: float64[11], from 0 to 8, mean 4, 2 not finite"),
        (np.full(7, np.nan), "y: float64[7], 7 not finite"),
        (np.ones(9, bool), "y: bool[9]"),
        (np.array(["a", "b"]), "y: string[2] = a, b"),
    ],
)
def test_line_of_an_output(value, line):
    assert [*outputs.lines_of({"y": value})] == [line]


def test_parts_of_sequences_and_maps_have_lines():
    given = {"s": [np.int32(1), np.int32(2)], "m": {"a": 0.5}, "none": None}

    assert [name.partition(":")[0] for name in outputs.lines_of(given)] == ["s.0", "s.1", "m.keys", "m.values"]


def test_saved_outputs_load_again(tmp_path):
    given = {
        "file": np.arange(3),
        "a/b:0": np.ones((2, 0)),
        "half": np.asarray(jnp.array([1.5], jnp.bfloat16)),
        "text": np.array(["x", "yz"], object),
        "s": [np.int32(1)],
    }
    outputs.save(given, tmp_path / "o.npz")
    loaded = np.load(tmp_path / "o.npz")

    assert sorted(loaded.files) == ["a/b:0", "file", "half", "s.0", "text"]
    assert loaded["file"].tolist() == [0, 1, 2]
    assert loaded["a/b:0"].shape == (2, 0)
    assert loaded["half"].tolist() == [1.5]
    assert loaded["text"].tolist() == ["x", "yz"]


def test_nothing_is_left_of_a_file_that_cannot_be_written(tmp_path):
    """Also no view of the file in memory, with which a reference cycle cannot be collected."""
    with pytest.raises(OSError, match="No such file"):
        outputs.save({"y": np.zeros(2)}, tmp_path / "none" / "o.npz")
    assert [*tmp_path.iterdir()] == []
    gc.collect()
