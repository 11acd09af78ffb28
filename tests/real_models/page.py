"""The tables of ``docs/real-models.md``: ``python -m tests.real_models.page`` makes them from what was recorded."""

import math
from collections import Counter
from typing import Any

from tests.real_models.agreement import RULE
from tests.real_models.records import CONVERTED, RESULTS, ROOT, Records

PAGE = ROOT / "docs" / "real-models.md"
BEGIN, END = "<!-- models -->\n", "<!-- end of models -->\n"
SOURCES = {
    "torchvision_models": "torchvision",
    "timm_models": "timm",
    "language_models": "transformers: encoders, and encoders with decoders",
    "decoder_models": "transformers: decoders",
    "media_models": "transformers: images, sound and time series",
    "torch_layers": "torch.nn",
    "torch_control": "Loops and conditionals of PyTorch",
    "sklearn_models": "scikit-learn",
    "boosted_trees": "LightGBM and XGBoost",
    "onnxruntime_tools": "Models that onnxruntime's tools made from others",
    "packages": "Models that packages ship",
}
"""The sources in the order of the page, with their titles."""
REFUSED = "not in OpenVINO"
"""The state of a model that OpenVINO does not convert or run."""


def number(value: float) -> str:
    """An error with one digit."""
    return "0" if value == 0 else "shape" if math.isinf(value) else f"{value:.0e}"


def largest(record: dict[str, Any], key: str) -> str:
    return number(max(value[key] for value in record["sizes"]))


def row(name: str, record: dict[str, Any]) -> str:
    """The row of one model."""
    state, sizes = record["state"], record["sizes"]
    if "reason" in record:
        return f"| `{name}` | {state}: {record['reason'].replace('|', '/')} | | | | |"
    cells = (state, len(sizes), largest(record, "error"), largest(record, "noise"), f"{record['seconds']:.1f}")
    return f"| `{name}` | {' | '.join(map(str, cells))} |"


def table(results: dict[str, dict[str, Any]]) -> list[str]:
    """The table of one source."""
    head = ["| model | state | sizes | error | noise | load and first call, s |", "|---|---|---|---|---|---|"]
    return [*head, *(row(name, results[name]) for name in sorted(results)), ""]


def summary(results: dict[str, dict[str, Any]]) -> str:
    """The numbers of models by their states."""
    states = Counter(result["state"] for result in results.values())
    agreeing = states.pop("agrees", 0)
    others = ", ".join(f"{state}: {count}" for state, count in states.most_common()) or "no others"
    two = sum(len(result["sizes"]) > 1 for result in results.values())
    share = 100 * agreeing / max(len(results), 1)
    return f"Of {len(results)} models, {agreeing} load and agree ({share:.1f} %); {others}. {two} ran at two sizes."


def converted_summary(converted: dict[str, dict[str, Any]]) -> str:
    """The numbers of models by way of OpenVINO, of those that it converts and runs."""
    taken = {name: entry for name, entry in converted.items() if entry["state"] != REFUSED}
    refused = sorted(f"`{name}`" for name in converted if name not in taken)
    least = f"\n\nOpenVINO does not convert or run {len(refused)} more: {', '.join(refused)}." if refused else ""
    return summary(taken) + least


def converted_row(name: str, record: dict[str, Any]) -> str:
    """The row of a model that OpenVINO converted."""
    if "reason" in record:
        return f"| `{name}` | {record['state']}: {record['reason'].replace('|', '/')} | | | |"
    theirs = number(record["openvino_from_onnxruntime"])
    return f"| `{name}` | {record['state']} | {largest(record, 'error')} | {theirs} | {largest(record, 'noise')} |"


def converted_table(converted: dict[str, dict[str, Any]]) -> list[str]:
    """The table of what OpenVINO converts."""
    head = ["| model | state | error | OpenVINO's from onnxruntime | noise |", "|---|---|---|---|---|"]
    taken = [name for name in sorted(converted) if converted[name]["state"] != REFUSED]
    return [*head, *(converted_row(name, converted[name]) for name in taken), ""]


def tables(results: dict[str, dict[str, Any]], converted: dict[str, dict[str, Any]]) -> str:
    """The generated part of the page."""
    lines = [summary(results), "", "## The rule", "", RULE]
    for source, title in SOURCES.items():
        found = {name: result for name, result in results.items() if result["source"] == source}
        lines += [f"## {title}", "", *table(found)] if found else []
    lines += [
        "## The same models by way of OpenVINO",
        "",
        converted_summary(converted),
        "",
        *converted_table(converted),
    ]
    return "\n".join(lines)


def page() -> str:
    """The page with its generated part made anew."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + tables(Records(RESULTS), Records(CONVERTED)) + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
