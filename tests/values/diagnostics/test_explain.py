"""The texts of codes, one at a time and as a page."""

import importlib
import re
from pathlib import Path

import pytest

import netloop as trt
from netloop.model.check import loops
from netloop.model.check.rule import RULES
from netloop.tools.cli import main
from netloop.values.diagnostics import CODES, Code, add_code
from netloop.values.diagnostics.explain import CHAPTERS, rules_page

PACKAGE = Path(trt.__file__).parent
PAGE = PACKAGE.parent / "docs" / "rules.md"


def test_a_rule_is_explained_by_its_docstring():
    assert trt.explain("NL204").splitlines() == [
        "NL204 (portability): TensorRT supports LAST_VALUE only for recurrences",
        "",
        "In a loop of n iterations, every tensor is a sequence X0 ... Xn-1. LAST_VALUE is",
        "Xn, one past the last iteration. A recurrence has that element; for any other",
        "tensor netloop computes it, and TensorRT refuses to.",
        "",
        "Wrong: `loop.add_loop_output(total.get_output(0), LoopOutput.LAST_VALUE)`",
        "Right: `loop.add_loop_output(running.get_output(0), LoopOutput.LAST_VALUE)`",
    ]


def test_what_is_raised_elsewhere_is_explained_too():
    assert trt.explain("NL104").startswith(
        "NL104 (error): the inputs and outputs of a network are identified by name\n"
    )


def test_small_letters_do():
    assert trt.explain("nl204") == trt.explain("NL204")


def test_unknown_code_that_is_close_to_one():
    with pytest.raises(ValueError, match="there is no code '204'; did you mean 'NL204'"):
        trt.explain("204")


@pytest.mark.parametrize("code", ["NL2o4", "nlzO4", "NLZO4"])
def test_letters_in_the_place_of_digits(code):
    with pytest.raises(ValueError, match=f"there is no code '{code}'; did you mean 'NL204'"):
        trt.explain(code)


def test_unknown_code_of_a_known_chapter():
    with pytest.raises(
        ValueError, match="there is no code 'NL399'; there are 'NL301', 'NL302', 'NL303', 'NL304', 'NL305'"
    ):
        trt.explain("NL399")


def test_code_that_is_no_text():
    with pytest.raises(TypeError, match="a code must be a str, not int"):
        trt.explain(204)


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
def test_reason_is_half_a_sentence(code):
    assert code.why
    assert code.why[0].islower() or code.why.startswith(("TensorRT", "XLA"))
    assert not code.why.endswith(".")


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
def test_wrong_comes_with_right(code):
    examples = [paragraph.split(":")[0] for paragraph in code.paragraphs if paragraph.startswith(("Wrong:", "Right:"))]

    assert examples in ([], ["Wrong", "Right"])
    assert code.text.count("Wrong:") == code.text.count("Right:") == len(examples) // 2


def test_every_rule_has_an_example():
    assert [name for name in RULES if "Wrong: " not in CODES[name].text] == []


def test_every_code_that_is_raised_is_in_the_register():
    sources = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]

    assert {name for source in sources for name in re.findall(r'"(NL\d{3})"', source)} - {"NL000"} <= set(CODES)


def test_every_code_is_raised():
    sources = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if not path.stem.endswith("_codes")]
    raised = {name for source in sources for name in re.findall(r'(?<!reason\()"(NL\d{3})"', source)}

    assert set(CODES) - raised == set()


def test_code_has_one_meaning():
    with pytest.raises(AssertionError, match="NL101 is in the register already"):
        add_code("NL101", "another reason")


def test_rules_can_be_imported_again_after_an_interrupt():
    before = dict(CODES)
    importlib.reload(loops)

    assert before == CODES


def test_text_is_cut_into_reason_paragraphs_and_examples():
    text = "the reason goes\non.\n\nOne\nparagraph.\nWrong: this\nand that\nRight: something\nelse"
    code = Code("NL000", trt.Severity.ERROR, text)

    assert code.why == "the reason goes on"
    assert code.paragraphs[1:] == ["One paragraph.", "Wrong: this and that", "Right: something else"]


def test_every_code_has_a_chapter():
    assert {name[:3] for name in CODES} == set(CHAPTERS)


def test_page_is_what_the_register_says():
    assert PAGE.read_text(encoding="utf-8") == rules_page(), "python -m netloop rules > docs/rules.md"


def test_page_has_a_section_for_each_code():
    assert re.findall(r"^### (NL\d{3})", rules_page(), re.MULTILINE) == sorted(CODES)


# ---------------------------------------------------------------------------- the commands


def test_command_explains(capsys):
    assert main(["explain", "NL204"]) == 0
    assert capsys.readouterr().out == trt.explain("NL204") + "\n"


def test_command_does_not_know_a_code(capsys):
    assert main(["explain", "NL399"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("there is no code 'NL399'")


def test_command_prints_the_page(capsys):
    assert main(["rules"]) == 0
    assert capsys.readouterr().out == rules_page()
