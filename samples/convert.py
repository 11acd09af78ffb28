"""A network in four formats: ONNX, OpenVINO IR, a plan, and a Python script that builds it.

The command line does the same for files: python -m netloop convert model.onnx model.xml

    the network: [ 1.  3.  6. 10.]
    sums.onnx:   [ 1.  3.  6. 10.]
    sums.xml:    [ 1.  3.  6. 10.]
    sums.plan:   [ 1.  3.  6. 10.]
    sums.py:     [ 1.  3.  6. 10.]
"""

import runpy
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import netloop as trt
import netloop.onnx
import netloop.openvino
import netloop.plan
import netloop.script


def running_sum() -> trt.INetworkDefinition:
    """Return a network from ``x`` [4] to its running sums ``sums`` [4]: x0, x0 + x1, ..."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (4,))
    length = network.add_constant((), np.array(4, np.int32)).get_output(0)
    loop = network.add_loop()
    loop.add_trip_limit(length, trt.TripLimit.COUNT)
    total = loop.add_recurrence(network.add_constant((), np.zeros((), np.float32)).get_output(0))
    element = loop.add_iterator(x).get_output(0)
    after = network.add_elementwise(total.get_output(0), element, trt.ElementWiseOperation.SUM).get_output(0)
    total.set_input(1, after)
    sums = loop.add_loop_output(after, trt.LoopOutput.CONCATENATE)
    sums.set_input(1, length)
    sums.get_output(0).name = "sums"
    network.mark_output(sums.get_output(0))
    return network


def show(name: str, network: trt.INetworkDefinition) -> None:
    """Run a network on 1, 2, 3, 4 and print its output."""
    sums = netloop.compile(network)({"x": np.array([1, 2, 3, 4], np.float32)})["sums"]
    print(f"{name + ':':<12} {np.asarray(sums)}")


def main() -> None:
    """Save the network in each format, load it from there, and run it."""
    network = running_sum()
    show("the network", network)
    with TemporaryDirectory() as folder:
        model, document, plan, script = (Path(folder, f"sums.{suffix}") for suffix in ("onnx", "xml", "plan", "py"))
        netloop.onnx.save(network, model)
        show("sums.onnx", netloop.onnx.load(model))
        netloop.openvino.save(network, document)
        show("sums.xml", netloop.openvino.load(document))
        netloop.plan.save(network, plan)
        show("sums.plan", netloop.plan.load(plan))
        netloop.script.save(network, script)
        show("sums.py", runpy.run_path(str(script))["build"]())


if __name__ == "__main__":
    main()
