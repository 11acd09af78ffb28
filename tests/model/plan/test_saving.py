import os
import subprocess
import sys
from pathlib import Path

import pytest

import netloop as trt
from netloop import plan
from tests.support import networks
from tests.support import plan_forge as forge

ROOT = Path(__file__).parents[3]


def test_what_is_saved_is_loaded(tmp_path):
    plan.save(networks.swap(), tmp_path / "some.plan")

    assert os.listdir(tmp_path) == ["some.plan"]
    assert (tmp_path / "some.plan").read_bytes() == plan.dumps(networks.swap())
    assert plan.dumps(plan.load(str(tmp_path / "some.plan"))) == plan.dumps(networks.swap())


def test_path_may_be_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan.save(networks.swap(), "some.plan")

    assert len(plan.load("some.plan")) == len(networks.swap())


def test_old_file_is_replaced(tmp_path):
    plan.save(networks.swap(), tmp_path / "some.plan")
    plan.save(networks.nested(), tmp_path / "some.plan")

    assert plan.dumps(plan.load(tmp_path / "some.plan")) == plan.dumps(networks.nested())


@pytest.mark.parametrize("name", ["replace", "open"])
def test_failure_leaves_the_old_file(tmp_path, monkeypatch, name):
    plan.save(networks.swap(), tmp_path / "some.plan")

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(Path, name, full)
    with pytest.raises(OSError, match="no space"):
        plan.save(networks.nested(), tmp_path / "some.plan")
    monkeypatch.undo()

    assert os.listdir(tmp_path) == ["some.plan"]
    assert (tmp_path / "some.plan").read_bytes() == plan.dumps(networks.swap())


def test_network_that_cannot_be_saved_leaves_the_old_file(tmp_path):
    plan.save(networks.swap(), tmp_path / "some.plan")
    network = trt.INetworkDefinition(flags=2**64)
    with pytest.raises(trt.NetworkError, match="flags of INetworkDefinition 'Unnamed Network 0' has 65 bits"):
        plan.save(network, tmp_path / "some.plan")

    assert os.listdir(tmp_path) == ["some.plan"]


def test_error_names_the_file(tmp_path):
    path = tmp_path / "some.plan"
    path.write_bytes(plan.dumps(networks.swap())[:-1])
    with pytest.raises(trt.FileFormatError) as caught:
        plan.load(path)

    assert caught.value.findings[0].where == str(path)


def test_error_names_the_place_in_the_file(tmp_path):
    path = tmp_path / "some.plan"
    document, files = forge.taken_apart(plan.dumps(networks.swap()))
    path.write_bytes(forge.put_together({**document, "name": None}, files))
    with pytest.raises(trt.FileFormatError) as caught:
        plan.load(path)

    assert caught.value.findings[0].where == f"{path}, network.json: name"


def test_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        plan.load(tmp_path / "none.plan")


KILLS = 40
KILLED = f"""
import os, random, signal, sys, time
import numpy as np
from netloop import plan
from tests.model.plan.test_round_trip import with_weights

path = sys.argv[1]
new = [with_weights(np.full(1 << 18, number, np.float32)) for number in range(2)]
whole = [plan.dumps(each) for each in new]
plan.save(new[0], path)
chance, seen = random.Random(0), []
for _ in range({KILLS}):
    child = os.fork()
    while child == 0:
        for each in new:
            plan.save(each, path)
    time.sleep(chance.uniform(0.001, 0.04))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    seen.append(whole.index(plan.dumps(plan.load(path))))
plan.save(new[0], path)
print(len(seen), os.listdir(os.path.dirname(path)))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_kill_leaves_the_old_file_or_the_new_one(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path / "some.plan")]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert ran.stdout == f"{KILLS} ['some.plan']\n", ran.stderr
