"""The figure of the results."""

from pathlib import Path

import pytest

from benchmarks.__main__ import PAGE
from benchmarks.figure import INK, Line, draw, lines

TEXT = """
## A processor, 2 cores
### Summary
| W1 LSTM | 2 | torch | 1 | no detail |
### Every variant
| W1 LSTM | 2 | netloop | 2.0 | 1 - 3 | 30 | 1.00 |
| W1 LSTM | 2 | onnxruntime op | 4 | 1 - 3 | 30 | 1.00 |
| W1 LSTM | 2 | onnxruntime loop | 1e+01 | 1 - 3 | 30 | 1.00 |
| W1 LSTM | 2 | openvino op | - | RuntimeError | 0 | - |
| W1 LSTM | 1 | torch | 9 | 1 - 3 | 30 | 1.00 |
| B2 call | 2 | netloop | 1 | 1 - 3 | 30 | 1.00 |
| M1 ResNet | 2 | expert | 1 | 1 - 3 | 30 | 1.00 |

## Another processor, 2 cores
### Every variant
| W1 LSTM | 2 | netloop | 9.0 | 1 - 3 | 30 | 1.00 |
"""


def test_line_has_the_fastest_variant_of_each_system():
    assert lines(TEXT) == [Line("W1 LSTM", {"onnxruntime": 2.0})]
    assert lines(TEXT, threads=1) == []


@pytest.mark.parametrize("theme", INK)
def test_figure_of_the_readme_is_that_of_the_results(theme):
    readme = Path("README.md").read_text(encoding="utf-8")
    figure = Path(f"docs/images/speed-{theme}.svg").read_text(encoding="utf-8")
    shown = lines(PAGE.read_text(encoding="utf-8"))

    assert f"docs/images/speed-{theme}.svg" in readme
    assert [line.name for line in shown if f">{line.name}</text>" not in figure] == [], "--plot docs/images"


def test_figure_is_drawn_for_light_and_dark_pages(tmp_path):
    pytest.importorskip("matplotlib")
    pages = draw(lines(TEXT), tmp_path)

    assert [page.name for page in pages] == ["speed-light.svg", "speed-dark.svg"]
    assert ["W1 LSTM" in page.read_text(encoding="utf-8") for page in pages] == [True, True]
    again = [page.read_bytes() for page in pages]
    draw(lines(TEXT), tmp_path)
    assert [page.read_bytes() for page in pages] == again
