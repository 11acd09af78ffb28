"""Converts models between three formats: ONNX (.onnx), OpenVINO IR (.xml, the weights beside it) and plans (.plan).

    python samples/convert.py model.onnx model.xml
    python samples/convert.py model.xml model.plan

What a format cannot express is told, all of it at once, and nothing is written. Without arguments it takes a network
with a loop through all three and back, and runs it from each:

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
    """Read a model, and write it in the format that the name of the target tells."""
    read, write = (FORMATS[Path(each).suffix] for each in (source, target))
    write.save(read.load(source), target)


def running_sum() -> trt.INetworkDefinition:
    """A network with the input ``x`` [4], and the output ``sums`` [4]: x0, x0 + x1, ..."""
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
    """Run a network on 1, 2, 3 and 4."""
    sums = netloop.compile(network)({"x": np.array([1, 2, 3, 4], np.float32)})["sums"]
    print(f"{name + ':':<12} {np.asarray(sums)}")


def main(arguments: list[str]) -> None:
    """Convert what is asked for, or else an example."""
    known = f"a file that ends in {', '.join(FORMATS)}"
    parser = argparse.ArgumentParser(description="Converts models between ONNX, OpenVINO IR and plans.")
    parser.add_argument("source", nargs="?", help=f"{known}; an example is converted if there is none")
    parser.add_argument("target", nargs="?", help=known)
    given = parser.parse_args(arguments)
    if given.source is None:
        return example()
    if given.target is None or any(Path(each).suffix not in FORMATS for each in (given.source, given.target)):
        parser.error(f"source and target are each {known}")
    try:
        convert(given.source, given.target)
    except (trt.NetloopError, OSError) as error:
        parser.exit(1, f"{error}\n")


def example() -> None:
    """Take a network through all formats and back, and run it from each."""
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
