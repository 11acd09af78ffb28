"""The version of TensorRT that a script is written for, by its names."""

import json
from pathlib import Path

import pytest

from netloop.tools.compat.versions.detection import OFTEN_OWN, detected
from netloop.values.removed_names import GENERAL, REMOVED

IMPORT = "import tensorrt as trt\n"


@pytest.fixture
def version_of(tmp_path):
    def version(source, **modules):
        for name, text in modules.items():
            (tmp_path / f"{name}.py").write_text(text)
        (tmp_path / "script.py").write_text(source)
        return detected(tmp_path / "script.py")

    return version


@pytest.mark.parametrize(
    ("source", "version"),
    [
        ("engine.num_io_tensors", 11),
        ("engine.num_bindings", 8),
        ("builder.build_cuda_engine(network)", 7),
        ("registry.plugin_creator_list", 10),
        ("builder.max_workspace_size = 1\nbuilder.build_engine(network, config)", 7),
        ("config.max_workspace_size = 1\nbuilder.build_engine(network, config)", 8),
        ("builder.max_batch_size = 1", 8),
        ("trt.SliceMode.WRAP", 8),
        ("class Own(trt.IPluginV2DynamicExt): pass", 10),
        ("class Own(trt.IPluginCreator): pass\nengine.num_bindings", 8),
        ("config.set_flag(trt.BuilderFlag.STRICT_TYPES)", 8),
        ("engine.num_bindings\nbuilder.build_cuda_engine(network)", 7),
        # names that are not TensorRT's
        ("Mode.STRICT_TYPES", 11),
        ("trt.Logger.VERBOSE", 11),
        ("trt.ProfilingVerbosity.VERBOSE", 8),
        ("cursor.execute(query)\nargs.max_batch_size\nlayer.stride", 11),
        ("num_bindings = 3", 11),
        ("def add(plugin: trt.IPluginV2DynamicExt): pass", 11),
        ('profile.set_shape_input("n", (1,), (2,), (3,))', 11),
        ("def broken(", 11),
    ],
)
def test_names_decide_the_version(version_of, source, version):
    assert version_of(IMPORT + source).version == version


def test_names_that_another_class_still_has_do_not_decide_alone():
    classes = json.loads((Path(__file__).parents[3] / "data" / "tensorrt_surface.json").read_text())["classes"]
    still = {name for members in classes.values() for kind in members.values() for name in kind}

    assert {entry.name for entry in REMOVED} & still <= OFTEN_OWN | GENERAL | {"__len__"}


def test_script_without_tensorrt_is_not_looked_at(version_of):
    assert version_of("engine.num_bindings").version == 11


def test_modules_next_to_the_script_count(version_of):
    source = "from . import none\nimport one, os.path\n"
    found = version_of(source, one="from .two import helper", two=IMPORT + "engine.num_bindings")

    assert found == (8, ("num_bindings",))
