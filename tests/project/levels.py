"""The wings of the package: the one list from which ARCHITECTURE.md's table and the test of imports are made.

``python -m tests.project.levels`` writes the table into ARCHITECTURE.md.
"""

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- levels -->\n", "<!-- end of levels -->\n"


class Wing(NamedTuple):
    """A folder at the root of netloop, which may import from the wings below it only.

    Attributes:
        name: its name.
        purpose: what it is for, in a sentence.
        levels: the names of its modules and folders; each may import those of earlier levels.
    """

    name: str
    purpose: str
    levels: tuple[str, ...]


WINGS = [
    Wing(
        "values",
        "what a network speaks of: element types, shapes, enumerations, values of tensors, findings",
        (
            "foreign_names",
            "removed_names",
            "enum_base",
            "devices enums diagnostics foreign_arrays unpicklable string_arrays",
            "types checked_attributes",
            "dims map_types",
            "tensor_values",
        ),
    ),
    Wing(
        "process",
        "the process and its machine: files read and written whole, forks, memory at addresses, CUDA's runtime",
        ("atomic_write file_reading forked garbage_collection host_memory idle_gpu stream_captures", "cuda_runtime"),
    ),
    Wing(
        "model",
        "networks and their meaning: what a script builds, its rules, what it computes, and how it is saved",
        (
            "weights manual_axes",
            "graph plugins",
            "layers",
            "nest",
            "marking",
            "network",
            "call_inputs device_errors input_defaults",
            "check formulas",
            "reference plan script",
        ),
    ),
    Wing(
        "compiler",
        "the way from a network to programs of XLA, and their calls",
        (
            "jax_settings product_precision recursion_limit xla_faults phases gpu_notice launches layer_times "
            "machine_code lru_cache",
            "recurrent convolution",
            "placement xla_compilation passes",
            "lower",
            "recipe trial",
            "host",
            "execution",
            "tuning",
        ),
    ),
    Wing(
        "formats",
        "models of other frameworks, in and out: ONNX, OpenVINO, JAX functions, StableHLO",
        ("shared", "onnx_graph", "deploy from_jax onnx openvino safetensors wts"),
    ),
    Wing("api", "TensorRT's objects: builder, engine, context, runtime, parsers, refitters", ()),
    Wing(
        "tools",
        "programs around networks and engines: the command line, reports, services, comparisons, stand-ins",
        ("sandbox peers", "report serve", "cli compat demo"),
    ),
]
"""From the bottom up. Above them are the public names: ``__init__``, and a module for each name that users import."""


def table() -> str:
    """The table of wings, from the top down, as Markdown."""
    rows = [
        f"| `{wing.name}` | {wing.purpose} | {'; '.join(map(listed, reversed(wing.levels)))} |"
        for wing in reversed(WINGS)
    ]
    return "\n".join(["| wing | what it is for | its parts, from the top down |", "|---|---|---|", *rows]) + "\n"


def listed(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split())


def page() -> str:
    """ARCHITECTURE.md with the table of today."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table() + END + after


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
