"""The text of a script around the statements that build the network."""

from collections.abc import Iterator, Sequence

from netloop.model.network import INetworkDefinition
from netloop.model.script.values import ScriptWeights

HEAD = '''"""A network of {layers} layers, as a script that netloop wrote: build() returns the network.{weights}"""

{imports}

import numpy as np
import {module}

BUILDER = trt.Builder(trt.Logger(trt.Logger.WARNING))
'''

WEIGHTS = """WEIGHTS = dict(np.load(Path(__file__).with_name({file!r})))
"""

KEPT = """atexit.register(WEIGHTS.clear)  # networks read packed weights by their addresses, so they stay until the end
"""

NAMED = '''

def named(part, name, metadata=""):
    """Name a layer, tensor, loop or conditional; return it."""
    part.name = name
    if metadata:
        part.metadata = metadata
    return part
'''

PACKED = '''

@cache
def packed(name, dtype, count):
    """Return the weights of an element type that numpy lacks, from their bytes."""
    return trt.Weights(dtype, WEIGHTS[name].ctypes.data, count)
'''

PLUGIN = '''

def plugin(name, version, namespace, fields):
    """Return a plugin, made by its registered creator."""
    creator = trt.get_plugin_registry().get_creator(name, version, namespace)
    if creator is None:
        raise LookupError(f"register the creator of the plugin {name!r}, version {version!r}, before build() is called")
    return creator.create_plugin(name, trt.PluginFieldCollection(fields), trt.TensorRTPhase.BUILD)
'''

BUILD = '''

def build():
    """Return the network."""
    network = BUILDER.create_network({flags})
{statements}
    return network


if __name__ == "__main__":
    print(build().num_layers, "layers")
'''


def module_text(
    network: INetworkDefinition, module: str, file: str, lines: Sequence[str], weights: ScriptWeights
) -> str:
    """Return the whole script; ``file`` is the name of the file of the weights."""
    return "".join(_parts(network, module, file, lines, weights))


def _parts(
    network: INetworkDefinition, module: str, file: str, lines: Sequence[str], weights: ScriptWeights
) -> Iterator[str]:
    imports = ["import atexit", "from functools import cache"] * weights.are_packed
    imports += ["from pathlib import Path"] * bool(weights)
    yield HEAD.format(
        layers=network.num_layers,
        weights="\n\nIts large weights are in an .npz file next to it.\n" * bool(weights),
        imports="\n".join(imports),
        module="netloop as trt" if module == "netloop" else "tensorrt as trt",
    ).replace('"""\n\n\n\n', '"""\n\n')
    if weights:
        yield WEIGHTS.format(file=file)
    if weights.are_packed:
        yield KEPT + PACKED
    if any("named(" in line for line in lines):
        yield NAMED
    if any("plugin(" in line for line in lines):
        yield PLUGIN
    yield BUILD.format(flags=network.flags, statements="\n".join(f"    {line}".rstrip() for line in lines))
