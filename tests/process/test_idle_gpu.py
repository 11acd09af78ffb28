"""A GPU that programs do not run on is named with the command that mends it; machines without one are left alone."""

import importlib.util
import tomllib
import warnings
from pathlib import Path

import jax
import pytest

import netloop as trt
from netloop.compiler import gpu_notice
from netloop.process.idle_gpu import PLUGINS, driver_version, idle_gpu
from netloop.tools.cli import main

VERSION = "NVRM version: NVIDIA UNIX {}  {}.82.07  Release Build\nGCC version:  gcc version 12.3.0\n"
OPEN, CLOSED = "Open Kernel Module for x86_64", "x86_64 Kernel Module"


@pytest.fixture(autouse=True)
def no_choice(monkeypatch):
    for name in ("JAX_PLATFORMS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A function that makes a machine, and returns its root: plugins by extra, a device, a driver."""

    def make(*extras: str, device: str = "", driver: int = 0, module: str = OPEN):
        modules = {PLUGINS[extra][0] for extra in extras}
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if name in modules else None)
        for name in filter(None, [device and f"dev/{device}", driver and "proc/driver/nvidia/version"]):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(VERSION.format(module, driver))
        return tmp_path

    return make


@pytest.mark.parametrize(
    ("extras", "facts", "what", "fix"),
    [
        ([], {"device": "nvidia0", "driver": 580}, "plugin for it is not installed", "'netloop[cuda13]'"),
        ([], {"device": "nvidia1", "driver": 550}, "plugin for it is not installed", "'netloop[cuda12]'"),
        ([], {"device": "nvidia0"}, "plugin for it is not installed", "'netloop[cuda13]'"),
        ([], {"device": "nvidia0", "driver": 470}, "plugin for it is not installed", "install a newer NVIDIA driver"),
        (["cuda13"], {}, "this process has none", "version 580 or newer; on a machine without a GPU"),
        (["cuda12"], {}, "this process has none", "version 525 or newer"),
        (["cuda13"], {"driver": 580}, "this process has none", "docker run --gpus all"),
        (["cuda13"], {"device": "nvidia0", "driver": 550}, "version 550, and the extra cuda13 needs 580", "cuda12"),
    ],
)
def test_what_is_missing_is_named_with_the_command_that_mends_it(machine, extras, facts, what, fix):
    finding = idle_gpu(root=machine(*extras, **facts))

    assert finding is not None
    assert what in finding.what
    assert fix in finding.fix


@pytest.mark.parametrize(
    ("extras", "facts"),
    [
        ([], {}),
        ([], {"driver": 580}),  # a container on a machine with a GPU that is not for it
        ([], {"device": "dxg"}),  # any GPU of Windows
        ([], {"device": "nvidiactl"}),
        (["cuda13"], {"device": "nvidia0", "driver": 580}),
        (["cuda12"], {"device": "nvidia0", "driver": 580}),
    ],
)
def test_nothing_is_said_where_nothing_is_missing(machine, extras, facts):
    assert idle_gpu(root=machine(*extras, **facts)) is None


@pytest.mark.parametrize(
    ("name", "value"), [("JAX_PLATFORMS", "cpu"), ("CUDA_VISIBLE_DEVICES", ""), ("CUDA_VISIBLE_DEVICES", "-1")]
)
def test_nothing_is_said_to_those_who_chose_the_cpu(machine, monkeypatch, name, value):
    monkeypatch.setenv(name, value)

    assert idle_gpu(root=machine(device="nvidia0", driver=580)) is None


def test_gpu_that_jax_could_not_start_is_known_once_jax_runs(machine):
    root = machine("cuda13", device="nvidia0", driver=580)

    assert idle_gpu(on_cpu=False, root=root) is None
    assert "JAX could not start it" in idle_gpu(on_cpu=True, root=root).what


@pytest.mark.parametrize("module", [OPEN, CLOSED])
def test_version_of_each_kind_of_driver_is_read(machine, module):
    assert driver_version(machine(driver=580, module=module)) == 580


def test_extras_that_are_named_install_a_plugin_and_the_cuda_runtime():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (lowest,) = (value.partition(">=")[2] for value in project["dependencies"] if value.startswith("jax>="))

    for extra in PLUGINS:
        major = int(extra.removeprefix("cuda"))
        wanted = [f"jax[{extra}]>={lowest}", f"cuda-bindings>={major},<{major + 1}"]
        assert project["optional-dependencies"][extra] == wanted


# ---------------------------------------------------------------------------- where it is said


@pytest.fixture
def gpu_without_plugin(machine, monkeypatch):
    """This machine, as if it had a GPU."""
    finding = idle_gpu(root=machine(device="nvidia0", driver=580))
    monkeypatch.undo()
    monkeypatch.setattr("netloop.tools.cli.idle_gpu", lambda: finding)
    monkeypatch.setattr(gpu_notice, "idle_gpu", lambda on_cpu: finding)
    gpu_notice.warn_of_idle_gpu.cache_clear()
    yield finding
    gpu_notice.warn_of_idle_gpu.cache_clear()


def test_version_says_it_on_the_error_stream(gpu_without_plugin, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])

    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (0, f"netloop {trt.__version__}\n")
    assert printed.err.startswith("warning: NL661 (warning): this machine has an NVIDIA GPU")
    assert "pip install 'netloop[cuda13]'" in printed.err


def engine():
    network = trt.INetworkDefinition()
    network.mark_output(
        network.add_unary(network.add_input("x", trt.float32, (2,)), trt.UnaryOperation.NEG).get_output(0)
    )
    return trt.compile(network)


def test_first_engine_warns_at_the_line_of_the_script(gpu_without_plugin, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    before = jax.config.jax_platforms
    jax.config.update("jax_platforms", None)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            engine()
            engine()
    finally:
        jax.config.update("jax_platforms", before)

    (warning,) = caught
    assert warning.category is trt.DeviceWarning
    assert warning.message.finding is gpu_without_plugin
    assert warning.filename == __file__


@pytest.mark.parametrize(("backend", "platforms"), [("gpu", None), ("cpu", "cpu")])
def test_engine_on_a_gpu_or_on_the_chosen_cpu_does_not_warn(gpu_without_plugin, monkeypatch, backend, platforms):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    before = jax.config.jax_platforms
    jax.config.update("jax_platforms", platforms)
    try:
        gpu_notice.warn_of_idle_gpu()  # a warning would be an error
    finally:
        jax.config.update("jax_platforms", before)
