"""Convert models between ONNX (.onnx), OpenVINO IR (.xml, with weights in a .bin file) and plans (.plan).

    python samples/convert.py model.onnx model.xml
    python samples/convert.py model.xml model.plan

If the target format cannot express a model, it prints all reasons and writes nothing. Without arguments, it converts a
network with a loop to all three formats and back, and runs the network loaded from each file:

    the network: [ 1.  3.  6. 10.]
    sums.onnx:   [ 1.  3.  6. 10.]
    sums.xml:    [ 1.  3.  6. 10.]
    sums.plan:   [ 1.  3.  6. 10.]
    back.onnx:   [ 1.  3.  6. 10.]
"""

import argparse
import os
import sys
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import netloop as trt
import netloop.onnx
import netloop.openvino
import netloop.plan

FORMATS = {".onnx": netloop.onnx, ".xml": netloop.openvino, ".plan": netloop.plan}


def convert(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Load a model, and save it in the format that the suffix of the target names."""
    read, write = (FORMATS[Path(each).suffix] for each in (source, target))
    write.save(read.load(source), target)


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


def main(arguments: list[str]) -> None:
    """Convert the model that the command line names, or an example."""
    known = f"a file that ends in {', '.join(FORMATS)}"
    parser = argparse.ArgumentParser(description="Convert models between ONNX, OpenVINO IR and plans.")
    parser.add_argument("source", nargs="?", help=f"{known}; without it, an example is converted")
    parser.add_argument("target", nargs="?", help=known)
    given = parser.parse_args(arguments)
    if given.source is None:
        return example()
    if given.target is None or any(Path(each).suffix not in FORMATS for each in (given.source, given.target)):
        parser.error(f"source and target must each be {known}")
    try:
        convert(given.source, given.target)
    except (trt.NetloopError, OSError) as error:
        parser.exit(1, f"{error}\n")


def example() -> None:
    """Convert a network to all formats and back, and run the network from each file."""
    network = running_sum()
    show("the network", network)
    with TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("sums.onnx", "sums.xml", "sums.plan", "back.onnx")]
        netloop.onnx.save(network, paths[0])
        for source, target in pairwise(paths):
            convert(source, target)
        for path in paths:
            show(path.name, FORMATS[path.suffix].load(path))


if __name__ == "__main__":
    main(sys.argv[1:])
