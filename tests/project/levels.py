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
    Level(
        ("enums", "diagnostics", "atomic_write", "removed_names", "unpicklable"),
        "TensorRT's enumerations; findings and their codes; files written whole; names removed from TensorRT; "
        "objects that are neither pickled nor copied",
    ),
    Level(
        ("types", "checked_attributes", "file_reading", "forked"),
        "element type, shape and known value of a tensor; objects that refuse unknown attributes; files read whole; "
        "forks that lack JAX",
    ),
    Level(("dims",), "shapes, permutations and weights as scripts write them"),
    Level(("graph", "plugins"), "tensor, layer, type inference, source locations; plugins"),
    Level(("layers",), "each layer kind: attributes, documentation, type rule, reference, lowering, `add_` method"),
    Level(("marking",), "outputs, debug tensors and weights that a script marks"),
    Level(("network",), "`INetworkDefinition`, the builder that users hold"),
    Level(
        ("nest", "call_inputs", "tensor_values", "device_errors"),
        "the region tree; the arrays of a call; values of tensors and sequences; failures of the device",
    ),
    Level(("jax_settings",), "the settings of JAX that engines need"),
    Level(
        ("check", "formulas", "xla_compilation"),
        "the rules; the formula builder, for importers and passes; compilation that Ctrl-C can leave",
    ),
    Level(("formats", "passes"), "what importers and exporters share; transformations that make a network faster"),
    Level(("onnx_graph",), "a network as a graph of ONNX operators, for both exporters"),
    Level(
        ("reference", "lower", "onnx", "openvino", "wts", "plan", "script"),
        "the interpreter; the translation to `jax.lax`; the formats of models, weights and plans; networks as scripts",
    ),
    Level(("host",), "host execution of networks with data-dependent shapes"),
    Level(("execution",), "compiled programs, their cache and weights; `to_jax`"),
    Level(("api",), "TensorRT's objects: builder, engine, context, runtime, parsers, refitters"),
    Level(("sandbox",), "untrusted models, each in a process of its own"),
    Level(("cli", "demo", "tensorrt", "__init__", "__main__"), "the command line, the demo, and the public names"),
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
