"""``file.py:function``: the network of a JAX function in a file."""

import numpy as np
import pytest

import netloop as trt
from netloop.tools.cli import main

SOURCE = """\
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

def step(params, x):
    return lax.scan(lambda h, row: (jnp.tanh(h * params["w"] + row), None), x[0], x)[0]

def norm(x):
    return jax.pure_callback(np.linalg.norm, jax.ShapeDtypeStruct((), x.dtype), x)

def broken(params, x):
    raise ValueError("no")
"""
WITH_EXAMPLES = """
examples = ({"w": np.float32([1, 2, 3])}, np.ones((5, 3), np.float32))
weights = "params"
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "a.py").write_text(SOURCE + WITH_EXAMPLES)
    (tmp_path / "b.py").write_text(SOURCE)
    return tmp_path / "a.py"


def converted(source, target, *options):
    assert main(["convert", source, str(target), *options]) == 0
    return trt.plan.load(target)


def test_examples_and_weights_of_the_file(file, tmp_path):
    network = converted(f"{file}:step", tmp_path / "a.plan")

    assert [(tensor.name, tuple(tensor.shape)) for tensor in network.inputs] == [("x", (5, 3))]
    assert "params.w" in [layer.name for layer in network.layers]
    made = trt.evaluate(network, {"x": np.zeros((5, 3), np.float32)})["output"]
    np.testing.assert_array_equal(made, np.zeros(3, np.float32))


def test_shapes_replace_those_of_examples(file, tmp_path):
    network = converted(f"{file}:step", tmp_path / "a.plan", "--shapes", "x:7x3")

    assert tuple(network.inputs[0].shape) == (7, 3)


@pytest.mark.parametrize(("shape", "open_lengths"), [("x:nx3", 1), ("x:-1x-1", 2), ("x:nx3,y:n", 2)])
def test_lengths_may_be_open(tmp_path, shape, open_lengths):
    (tmp_path / "e.py").write_text("def total(x, y):\n    return x.sum() + y.sum()\n")
    options = ["--shapes", shape if "y" in shape else f"{shape},y:2"]
    inputs = converted(f"{tmp_path}/e.py:total", tmp_path / "e.plan", *options).inputs

    assert sum(length == -1 for tensor in inputs for length in tensor.shape) == open_lengths


def test_run_takes_the_shapes_of_arguments(file, capsys):
    assert main(["run", f"{file.parent / 'b.py'}:step", "--shapes", "params:3,x:4x3"]) == 2  # params is a dict
    (file.parent / "f.py").write_text("def twice(x):\n    return x + x\n")
    assert main(["run", f"{file.parent / 'f.py'}:twice", "--shapes", "x:4x3"]) == 0
    assert "float32[4,3]" in capsys.readouterr().out
    assert main(["run", f"{file.parent / 'f.py'}:twice", "--shapes", "x:nx3"]) == 2
    assert "a run needs a number for each length" in capsys.readouterr().err


def test_shapes_alone_are_of_float32(file, tmp_path):
    (tmp_path / "c.py").write_text("def twice(x, y):\n    return x * 2 + y\n")
    network = converted(f"{tmp_path / 'c.py'}:twice", tmp_path / "c.plan", "--shapes", "x:2x3,y:scalar")

    assert [(tensor.name, tensor.dtype, tuple(tensor.shape)) for tensor in network.inputs] == [
        ("x", trt.float32, (2, 3)),
        ("y", trt.float32, ()),
    ]


def test_other_commands_take_the_function_too(file, capsys):
    assert main(["inspect", f"{file}:step"]) == 0
    assert "1 loop" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("a.py:other", [], "has no function other()"),
        ("a.py:step", ["--shapes", "z:3"], "has no parameter z"),
        (
            "b.py:step",
            [],
            "has no example of params, x; write examples = (...) in the file, or give --shapes params:2x3",
        ),
        ("a.py:broken", [], "tracing broken() raised ValueError"),
        ("b.py:norm", ["--shapes", "x:3x3"], "netloop has no rule for the primitive 'pure_callback'"),
        ("no.py:step", [], "there is no file"),
    ],
)
def test_function_that_makes_no_network(name, options, says, file, tmp_path, capsys):
    assert main(["convert", str(tmp_path / name), str(tmp_path / "a.plan"), *options]) == 2
    assert says in capsys.readouterr().err


TWO = """
examples = (np.ones((5, 3), np.float32), np.ones(2, np.float32))

def norm(x):
    return x * x

def apply(x, y):
    return x.sum() * y
"""


def test_shapes_of_all_arguments_need_no_examples_of_the_file(tmp_path):
    (tmp_path / "d.py").write_text("import numpy as np\n" + TWO)

    assert tuple(converted(f"{tmp_path}/d.py:norm", tmp_path / "d.plan", "--shapes", "x:2").inputs[0].shape) == (2,)
    assert len(converted(f"{tmp_path}/d.py:apply", tmp_path / "e.plan").inputs) == 2


def test_examples_of_another_function_are_told_in_one_line(tmp_path, capsys):
    (tmp_path / "d.py").write_text("import numpy as np\n" + TWO)

    assert main(["convert", f"{tmp_path}/d.py:norm", str(tmp_path / "d.plan")]) == 2
    said = capsys.readouterr().err
    assert "examples of " in said
    assert (
        "has 2, and norm(x) too many positional arguments; give the shapes of all its arguments: --shapes x:2x3" in said
    )
    assert said.count("\n") == 1
