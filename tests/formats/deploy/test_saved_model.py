"""Networks as SavedModels, which TensorFlow runs."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import netloop as trt
from tests.formats.deploy.examples import EXAMPLES, same

PROGRAM = Path(__file__).parents[3] / "samples" / "without_python" / "run_saved_model.c"

tensorflow = pytest.importorskip("tensorflow")


def run(folder, inputs):
    signature = tensorflow.saved_model.load(str(folder)).signatures["serving_default"]
    return {name: value.numpy() for name, value in signature(**inputs).items()}


@pytest.mark.parametrize("example", EXAMPLES)
def test_tensorflow_gives_the_outputs_of_the_engine(example, tmp_path):
    network, inputs, outputs = example()
    trt.export(network, tmp_path / "a.savedmodel")

    same(
        run(tmp_path / "a.savedmodel", {name: tensorflow.constant(tensor) for name, tensor in inputs.items()}), outputs
    )


def rows(name="x"):
    network = trt.INetworkDefinition()
    x = network.add_input(name, trt.float32, (-1, 2))
    y = network.add_unary(x, trt.UnaryOperation.EXP).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return network


def test_any_number_of_rows(tmp_path):
    trt.export(rows(), tmp_path / "a.savedmodel", batch="b")

    for count in (1, 4):
        x = np.full((count, 2), 0.5, np.float32)
        same(run(tmp_path / "a.savedmodel", {"x": x}), {"y": np.exp(x)})


def test_names_of_inputs_become_words(tmp_path):
    trt.export(rows("layer/0:x"), tmp_path / "a.savedmodel", shapes={"layer/0:x": (1, 2)})

    same(run(tmp_path / "a.savedmodel", {"layer_0_x": np.zeros((1, 2), np.float32)}), {"y": np.ones((1, 2))})


def test_names_that_become_one_word_are_refused(tmp_path):
    network = rows("a/b")
    network.mark_output(network.add_identity(network.add_input("a:b", trt.float32, ())).get_output(0))

    with pytest.raises(ValueError, match="'a_b' and 'a:b' would be one argument of TensorFlow: rename one of them"):
        trt.export(network, tmp_path / "a.savedmodel", shapes={"a/b": (1, 2)})


def test_folder_that_is_there_stays(tmp_path):
    (tmp_path / "a.savedmodel").mkdir()
    (tmp_path / "a.savedmodel" / "kept").write_text("")

    with pytest.raises(FileExistsError, match="is there already: remove it, or give another name"):
        trt.export(rows(), tmp_path / "a.savedmodel", shapes={"x": (1, 2)})
    assert [value.name for value in tmp_path.rglob("*")] == ["a.savedmodel", "kept"]


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler of C")
def test_c_program_runs_it_without_python(tmp_path):
    network, inputs, outputs = EXAMPLES[0]()
    trt.export(network, tmp_path / "a.savedmodel")
    libraries = Path(tensorflow.__file__).parent
    linked = ["-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2", f"-Wl,-rpath,{libraries}"]
    command = ["cc", "-Wall", "-Wextra", "-Werror", str(PROGRAM), "-o", str(tmp_path / "run"), f"-L{libraries}"]
    subprocess.run([*command, f"-I{libraries / 'include'}", *linked], check=True)
    numbers = [str(value) for value in inputs["start"].ravel()]
    done = subprocess.run(
        [str(tmp_path / "run"), str(tmp_path / "a.savedmodel"), "start", "2x3", *numbers],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    same({"last": np.float32(done.stdout.split()).reshape(2, 3)}, {"last": outputs["last"]})
