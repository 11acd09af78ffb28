"""The tables of ``docs/real-models.md``: ``python -m tests.real_models.page`` makes them from what was recorded."""

import math
from collections import Counter
from statistics import median
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
    "hybrid_models": "transformers: recurrent, hybrid and sparse decoders",
    "media_models": "transformers: images, sound and time series",
    "multimodal_models": "transformers: several media, more images and time series",
    "detection_models": "transformers: detectors and segmenters",
    "speech_models": "transformers: speech and music",
    "diffusion_models": "diffusers",
    "graph_models": "torch-geometric and nflows",
    "torchaudio_models": "torchaudio",
    "tensorflow_models": "TensorFlow and Keras",
    "torch_layers": "torch.nn",
    "torch_control": "Loops and conditionals of PyTorch",
    "sequence_networks": "Networks of sequences with loops of their own",
    "sklearn_models": "scikit-learn",
    "boosted_trees": "LightGBM, XGBoost and CatBoost",
    "onnxruntime_tools": "Models that onnxruntime's tools made from others",
    "packages": "Models that packages ship",
}
"""The sources in the order of the page, with their titles."""
STEPS = "growing_models"
STEPS_TEXT = """Each step takes the cache that the step before returned, with a row more, and onnxruntime's token.
Programs are those that XLA compiles in all steps. Those named `nothing` begin with an empty cache and five tokens;
`merged` has a branch for that step and one for later ones, as Optimum writes decoders.
"""
REFUSED = "not in OpenVINO"
"""The state of a model that OpenVINO does not convert or run."""


def number(value: float) -> str:
    """An error with one digit."""
    return "0" if value == 0 else "shape" if math.isinf(value) else f"{value:.0e}"


def largest(record: dict[str, Any], key: str) -> str:
    return number(max(value[key] for value in record["sizes"]))


def both(record: dict[str, Any], key: str, form: str) -> str:
    """A cost of netloop and of onnxruntime, as far as they were measured."""
    costs = record.get(key), record.get("onnxruntime", {}).get(key)
    return " / ".join("-" if cost is None else format(cost, form) for cost in costs)


def row(name: str, record: dict[str, Any]) -> str:
    """The row of one model."""
    state, sizes = record["state"], record["sizes"]
    if "reason" in record:
        return f"| `{name}` | {state}: {record['reason'].replace('|', '/')} | | | | | | |"
    numbers = len(sizes), largest(record, "error"), largest(record, "noise")
    costs = both(record, "seconds", ".2f"), both(record, "milliseconds", ".3g"), both(record, "megabytes", ".0f")
    return f"| `{name}` | {state} | {' | '.join(map(str, (*numbers, *costs)))} |"


def table(results: dict[str, dict[str, Any]]) -> list[str]:
    """The table of one source."""
    head = [
        "| model | state | sizes | error | noise | load and first call, s | another call, ms | peak, MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return [*head, *(row(name, results[name]) for name in sorted(results)), ""]


def steps_row(name: str, record: dict[str, Any]) -> str:
    """The row of a decoder whose cache grows."""
    if "reason" in record:
        return f"| `{name}` | {record['state']}: {record['reason'].replace('|', '/')} | | | | | | |"
    numbers = len(record["sizes"]), largest(record, "error"), largest(record, "noise"), record["programs"]
    new = format(1e3 * median(record["later"]), ".1f")
    costs = both(record, "seconds", ".2f"), f"{new}, {both(record, 'milliseconds', '.3g')}"
    return f"| `{name}` | {record['state']} | {' | '.join(map(str, (*numbers, *costs)))} |"


def steps_table(results: dict[str, dict[str, Any]]) -> list[str]:
    """The table of decoders whose cache grows."""
    head = [
        "| model | state | steps | error | noise | programs | load and first call, s | at a new, known length, ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return [*head, *(steps_row(name, results[name]) for name in sorted(results)), ""]


def ratios(results: dict[str, dict[str, Any]]) -> str:
    """How calls compare with those of onnxruntime."""
    pairs = [(r.get("milliseconds"), r.get("onnxruntime", {}).get("milliseconds")) for r in results.values()]
    times = sorted(mine / theirs for mine, theirs in pairs if mine and theirs)
    if not times:
        return ""
    above = ", ".join(f"above {bound} for {sum(time > bound for time in times)}" for bound in (1, 2, 3, 10))
    return (
        f"Another call takes {median(times):.2f} times the CPU time of onnxruntime's in the median of {len(times)} "
        f"models: {above}, and at most {times[-1]:.0f} times."
    )


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
    lines = [summary(results), "", ratios(results), "", "## The rule", "", RULE]
    by_source = {
        source: {name: result for name, result in results.items() if result["source"] == source}
        for source in (*SOURCES, STEPS)
    }
    if by_source[STEPS]:
        lines += ["## Decoders whose cache grows", "", STEPS_TEXT, *steps_table(by_source[STEPS])]
    for source, title in SOURCES.items():
        own = by_source[source]
        lines += [f"## {title}", "", *table(own)] if own else []
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
