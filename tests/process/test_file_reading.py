"""Files that are larger than memory: each reader refuses them before it reads a byte."""

import io
import os
import struct
import tracemalloc

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import netloop as trt
from netloop import plan, wts
from netloop.formats.shared.import_errors import ImportErrors
from netloop.model.plan import container
from netloop.process import file_reading

HUGE = 1 << 36
"""64 GB, of which a sparse file takes nothing on the disk."""

CONSTANT = f"""
<net version="11"><layers>
<layer id="0" name="c" type="Const" version="opset1">
  <data element_type="f32" shape="{HUGE // 4}" offset="0" size="{HUGE}"/>
  <output><port id="0" precision="FP32"><dim>{HUGE // 4}</dim></port></output></layer>
<layer id="1" name="y" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>
"""


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    monkeypatch.setattr(file_reading, "free_memory", lambda: 1 << 30)


def sparse(path, start=b""):
    """A file of zeros after its first bytes, of 64 GB."""
    path.write_bytes(start)
    os.truncate(path, HUGE)
    return path


def refused(read, *arguments, error=trt.FileFormatError):
    with pytest.raises(error) as caught:
        read(*arguments)
    (finding,) = caught.value.findings
    assert finding.code == "NL755"
    return finding


def model_of(tensor):
    """A model that returns a tensor."""
    output = helper.make_tensor_value_info("w", tensor.data_type, list(tensor.dims))
    return helper.make_model(helper.make_graph([], "g", [], [output], [tensor]))


def test_onnx_weights_larger_than_memory_are_refused(tmp_path):
    sparse(tmp_path / "weights.bin")
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[HUGE // 4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="weights.bin")
    onnx.save(model_of(tensor), tmp_path / "model.onnx")

    found = refused(trt.onnx.load, tmp_path / "model.onnx", error=trt.ModelError)
    assert found.what == f"the tensor needs {HUGE} bytes of memory, and {1 << 30} are free"
    assert found.where.endswith("model.onnx, initializer 'w'")


def test_openvino_weights_larger_than_memory_are_refused(tmp_path):
    sparse(tmp_path / "model.bin")
    (tmp_path / "model.xml").write_text(CONSTANT, encoding="utf-8")

    found = refused(trt.openvino.load, tmp_path / "model.xml", error=trt.ModelError)
    assert found.what == f"the constant needs {HUGE} bytes of memory, and {1 << 30} are free"


def test_plan_larger_than_memory_is_refused(tmp_path):
    found = refused(plan.load, sparse(tmp_path / "net.plan", b"PK\3\4"))

    assert found.where == str(tmp_path / "net.plan")


def test_stream_of_a_plan_larger_than_memory_is_refused():
    members = [container.Member("network.json", [b"{}"]), container.Member("weights/0000.npy", [b"x"])]
    manifest = container.manifest(members).replace(b'"size":1,', b'"size":%d,' % HUGE)
    start = io.BytesIO(b"".join(container.zipped([container.Member("manifest.json", [manifest])])))

    found = refused(plan.draw, lambda size: start.read(size) or b"x" * size)
    assert found.what.startswith(f"the plan needs {HUGE}"[:20])


def test_weight_file_larger_than_memory_is_refused(tmp_path):
    found = refused(wts.load, sparse(tmp_path / "net.wts", b"1\n"))

    assert found.what == f"the file needs {2 * HUGE} bytes of memory, and {1 << 30} are free"


def test_sparse_tensor_larger_than_memory_is_refused(monkeypatch):
    monkeypatch.setattr(file_reading, "free_memory", lambda: 1 << 20)
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [0])
    graph = helper.make_graph([], "g", [], [helper.make_tensor_value_info("w", TensorProto.FLOAT, [1 << 24])])
    graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [1 << 24]))

    assert "the sparse tensor needs" in refused(trt.onnx.load, helper.make_model(graph), error=trt.ModelError).what


@pytest.mark.parametrize("read", [plan.load, wts.load])
def test_pipe_is_refused_without_waiting(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(OSError, match="not a regular file"):
        read(tmp_path / "pipe")


def test_lack_of_memory_in_an_import_is_a_finding():
    errors = ImportErrors("model.onnx", "NL745", {})
    with errors.collect("node 'a'"):
        raise MemoryError

    found = refused(errors.raise_all, error=trt.ModelError)
    assert found.what == "there is not enough memory to import it"


def test_exception_that_an_importer_does_not_expect_is_a_finding_with_its_cause():
    errors = ImportErrors("model.onnx", "NL745", {})
    with errors.collect("node 'a'"):
        (0,)[1]

    with pytest.raises(trt.ModelError) as caught:
        errors.raise_all()
    (finding,) = caught.value.findings
    assert (finding.code, finding.where) == ("NL754", "model.onnx, node 'a'")
    assert finding.what == "netloop cannot import it: IndexError: tuple index out of range"
    assert isinstance(caught.value.__cause__, IndexError)


def test_import_ends_after_a_thousand_findings():
    errors = ImportErrors("model.onnx", "NL745", {})

    def fail(number: int) -> None:
        with errors.collect(f"node {number}"):
            raise ValueError("no")

    for number in range(999):
        fail(number)
    with pytest.raises(trt.ModelError) as caught:
        fail(999)
    assert len(caught.value.findings) == 1000


def test_text_of_weights_takes_a_small_multiple_of_its_memory(tmp_path):
    count = 30_000
    (tmp_path / "net.wts").write_bytes(b"1\na 2 %d" % count + b" 1" * count + b"\n")
    tracemalloc.start()
    arrays = wts.load(tmp_path / "net.wts")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert arrays["a"].sum() == count
    assert peak < 10 * 2 * count


def test_free_memory_is_known_on_linux(monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setattr(file_reading, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(file_reading, "LIMIT_OF_GROUP", tmp_path / "max")
    assert file_reading.free_memory() is None

    (tmp_path / "meminfo").write_text(
        "MemTotal: 9 kB\nMemAvailable:  4 kB\nSwapFree: 1 kB\nHugePages_Total:  0\n", encoding="ascii"
    )
    assert file_reading.free_memory() == 5 << 10

    (tmp_path / "max").write_text("max\n", encoding="ascii")
    assert file_reading.free_memory() == 5 << 10
    (tmp_path / "max").write_text("1024\n", encoding="ascii")
    assert file_reading.free_memory() == 1024


@pytest.mark.parametrize(
    "dtype", [TensorProto.FLOAT, TensorProto.BFLOAT16, TensorProto.BOOL, TensorProto.INT4, TensorProto.UINT16]
)
def test_external_elements_of_each_width_are_read(tmp_path, dtype):
    raw = bytes([1, 0, 1, 1]) if dtype == TensorProto.BOOL else struct.pack("<I", 0x3F803F80)
    count = {TensorProto.FLOAT: 1, TensorProto.BOOL: 4, TensorProto.INT4: 8}.get(dtype, 2)
    tensor = TensorProto(name="w", data_type=dtype, dims=[count], raw_data=raw)
    inside = trt.onnx.load(model_of(tensor))
    (tmp_path / "weights.bin").write_bytes(raw)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    outside = trt.onnx.load(model_of(tensor), base_dir=tmp_path)

    np.testing.assert_array_equal(outside.layers[0].weights, inside.layers[0].weights)
