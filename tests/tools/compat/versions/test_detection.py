"""The version of TensorRT that a script is written for, by its names."""

import pytest

from netloop.tools.compat.versions.detection import detected

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
        ("config.set_flag(trt.BuilderFlag.STRICT_TYPES)", 8),
        ("engine.num_bindings\nbuilder.build_cuda_engine(network)", 7),
        # names that are not TensorRT's
        ("Mode.STRICT_TYPES", 11),
        ("trt.Logger.VERBOSE", 11),
        ("trt.ProfilingVerbosity.VERBOSE", 8),
        ("cursor.execute(query)\nargs.max_batch_size\nlayer.stride", 11),
        ("num_bindings = 3", 11),
        ("def broken(", 11),
    ],
)
def test_names_decide_the_version(version_of, source, version):
    assert version_of(IMPORT + source).version == version


def test_script_without_tensorrt_is_not_looked_at(version_of):
    assert version_of("engine.num_bindings").version == 11


def test_modules_next_to_the_script_count(version_of):
    source = "from . import none\nimport one, os.path\n"
    found = version_of(source, one="from .two import helper", two=IMPORT + "engine.num_bindings")

    assert found == (8, ("num_bindings",))
