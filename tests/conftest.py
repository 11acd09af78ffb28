"""Fixtures and settings of all tests."""

import gc
import inspect
import os
import signal
import sys
from collections.abc import Generator
from itertools import groupby
from typing import Any

import jax
import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import HealthCheck, settings

import netloop
from tests.redundant_cases.listed import mark_as_slow
from tests.support import eight_devices
from tests.support.equal_programs import equal_programs_share_executables
from tests.support.exact_products import ask_for_exact_products
from tests.support.examples import IS_NIGHTLY
from tests.support.laws import Case, compile_together
from tests.support.peers import openvino as openvino  # importing it forks, which JAX forbids once it runs
from tests.support.quick_programs import is_quick, quick_programs
from tests.support.watchdog import Watchdog

if sys.platform == "linux" and not IS_NIGHTLY:
    # a core for each worker, if there are as many: programs of tests are too small for threads of XLA on several cores,
    # which take a tenth of the time of all tests; those that the nightly profile runs, or one process, have them
    cores = sorted(os.sched_getaffinity(0))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    # the next number is that of the successor of a worker that crashed
    if os.environ.get("PYTEST_XDIST_WORKER_COUNT") == str(len(cores)) and worker < len(cores):
        os.sched_setaffinity(0, {cores[worker]})

gc.disable()  # until all tests are collected, which live on
# compiled files are for all processes: otherwise each that a test starts compiles the sources of netloop first
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# a tenth of the time in which JAX lowers a program and XLA reads it is for the Python lines of each operation
jax.config.update("jax_traceback_in_locations_limit", 0)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # a shell starts what runs in its background so; tests send Ctrl-C to themselves and to their children
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "default", deadline=None, suppress_health_check=list(HealthCheck), print_blob=True, report_multiple_bugs=False
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("nightly", settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


WATCHDOG = Watchdog()


@pytest.fixture
def network() -> netloop.INetworkDefinition:
    """An empty network."""
    return netloop.INetworkDefinition()


@pytest.fixture
def default_precision() -> Generator[None]:
    """JAX with the precision of products that users have by default, also where tests ask for that of float32."""
    with jax.default_matmul_precision(None):
        yield


def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """Make no items of a slow test where slow tests are left out: each worker would make thousands, to drop them.

    A test that the command line names is made, so that pytest says that it is left out.
    """
    config = collector.config
    if config.option.markexpr != "not slow" or any("::" in argument for argument in config.args):
        return None
    is_slow = inspect.isfunction(obj) and any(mark.name == "slow" for mark in getattr(obj, "pytestmark", ()))
    return [] if is_slow else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark redundant cases as slow, except where the list of them is made anew."""
    if not config.pluginmanager.has_plugin("tests.redundant_cases.reach"):
        mark_as_slow(items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Compile the cases of the tests of each file in batches, and leave what was collected out of Python's collections.

    Full collections of the garbage collector would visit all tests and modules each time, to free nothing; and then
    what JAX keeps of thousands of programs.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 10, 100)
    gc.enable()
    for _, items in groupby(session.items, lambda item: (item.path, is_quick(item))):
        cases = [
            item.callspec.params.get("case")
            for item in items
            if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        ]
        compile_together([case_ for case_ in cases if isinstance(case_, Case)])


def pytest_sessionfinish() -> None:
    """Collect garbage once: pytest does so five times at the end, and visits what JAX keeps for five seconds."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
    """Compile the programs of a test, and of its fixtures, quickly or as users compile, with products of float32."""
    ask_for_exact_products()
    with quick_programs(is_quick(item)), equal_programs_share_executables():
        result = yield
    if nextitem is None:
        WATCHDOG.stop()
    return result


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool:
    """End the process after the time of a test, by a watchdog for many tests instead of the plugin's for each."""
    WATCHDOG.watch(settings.timeout, item.config.stash[fault_handler_stderr_fd_key])
    return True


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_cancel_timer(item: pytest.Item) -> bool:
    """Leave the watchdog for the next test."""
    return True


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that needs eight devices in a process that has them."""
    if not eight_devices.needs_eight_devices(pyfuncitem) or eight_devices.has_eight_devices():
        return None
    failure = eight_devices.outcome(pyfuncitem)
    if failure:
        pytest.fail(failure, pytrace=False)
    return True
