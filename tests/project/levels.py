"""The levels of the package: the one list from which ARCHITECTURE.md's table and the test of imports are made.

``python -m tests.project.levels`` writes the table into ARCHITECTURE.md.
"""

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- levels -->\n", "<!-- end of levels -->\n"


class Level(NamedTuple):
    """Modules and folders of netloop that may import those of lower levels only.

    Attributes:
        modules: their names.
        what: what they are for.
    """

    modules: tuple[str, ...]
    what: str


LEVELS = [
    Level(("enum_base",), "the base class of enumerations"),
    Level(
        ("enums", "diagnostics", "atomic_write", "removed_names", "unpicklable", "string_arrays", "garbage_collection"),
        "TensorRT's enumerations; findings and their codes; files written whole; names removed from TensorRT; "
        "objects that are neither pickled nor copied; arrays of strings; pauses of Python's garbage collector",
    ),
    Level(
        ("types", "checked_attributes", "file_reading", "forked", "manual_axes"),
        "element type, shape and known value of a tensor; objects that refuse unknown attributes; files read whole; "
        "forks that lack JAX; loops and branches inside `jax.shard_map`",
    ),
    Level(("dims", "map_types"), "shapes, permutations and weights as scripts write them; maps from keys to values"),
    Level(("graph", "plugins"), "tensor, layer, type inference, source locations; plugins"),
    Level(("layers",), "each layer kind: attributes, documentation, type rule, reference, lowering, `add_` method"),
    Level(("nest",), "the region tree, and the listing of a network that follows it"),
    Level(("marking",), "outputs, debug tensors and weights that a script marks"),
    Level(("network",), "`INetworkDefinition`, the builder that users hold"),
    Level(
        ("call_inputs", "tensor_values", "device_errors"),
        "the arrays of a call; values of tensors and sequences; failures of the device",
    ),
    Level(("jax_settings", "xla_faults"), "the settings of JAX that engines need; programs that XLA compiles wrong"),
    Level(
        ("check", "formulas", "xla_compilation"),
        "the rules; the formula builder, for importers and passes; compilation that Ctrl-C can leave",
    ),
    Level(("formats", "passes"), "what importers and exporters share; transformations that make a network faster"),
    Level(("onnx_graph",), "a network as a graph of ONNX operators, for both exporters"),
    Level(
        ("reference", "lower", "wts", "plan", "script"),
        "the interpreter; the translation to `jax.lax`; the formats of weights and plans; networks as scripts",
    ),
    Level(("host",), "host execution of networks with data-dependent shapes"),
    Level(
        ("execution",),
        "compiled programs, their cache and weights; `to_jax`; networks on a mesh of devices; loops whose requests run "
        "in slots",
    ),
    Level(("tuning",), "the forms of passes that are fastest on this machine, by timing"),
    Level(("from_jax", "onnx", "openvino", "stablehlo"), "JAX functions as networks; the formats of models"),
    Level(("deploy",), "networks as files for runtimes that need neither netloop nor Python"),
    Level(("api",), "TensorRT's objects: builder, engine, context, runtime, parsers, refitters"),
    Level(
        ("sandbox", "peers"),
        "untrusted models, each in a process of its own; other runtimes, and where an engine differs from them",
    ),
    Level(
        ("report", "serve"),
        "a network, an engine and a run as a page of HTML; engines as services, with batches and states of sequences",
    ),
    Level(
        ("cli", "compat", "demo", "tensorrt", "public_names", "__init__", "__main__"),
        "the command line, stand-ins for TensorRT and CUDA's packages, the demo, and the public names",
    ),
]
"""From the bottom up."""


def table() -> str:
    """The table of levels, from the top down, as Markdown."""
    rows = [f"| {', '.join(f'`{each}`' for each in level.modules)} | {level.what} |" for level in reversed(LEVELS)]
    return "\n".join(["| modules | what they are for |", "|---|---|", *rows]) + "\n"


def page() -> str:
    """ARCHITECTURE.md with the table of today."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table() + END + after


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
