"""The page of a report, also in a real browser where Playwright and Chromium are installed."""

import re
import shutil
import time

import numpy as np
import pytest

import netloop as trt
from netloop.tools.report import report, report_difference
from samples.conditional_in_loop import build as collatz
from samples.lstm import build as lstm
from tests.support.networks import X, deep, mark, nested, running_sum

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\u2028"


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as running:
        made = running.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def opened(browser, tmp_path):
    """A function that opens the page of a network; at the end, no error may be on the console."""
    messages = []
    tab = browser.new_page(viewport={"width": 1400, "height": 900})
    tab.on("console", lambda message: messages.append(message.text))
    tab.on("pageerror", lambda error: messages.append(str(error)))
    tab.on("request", lambda request: messages.append(request.url) if request.url.startswith("http") else None)

    def opened(network, *arguments):
        report(network, tmp_path / "report.html", *arguments)
        tab.goto((tmp_path / "report.html").as_uri())
        tab.wait_for_selector("body[data-ready]", timeout=10_000)
        return tab

    yield opened
    tab.close()
    assert messages == []


def hostile(network):
    network.name = HOSTILE
    loop = network.add_loop()
    loop.name = HOSTILE
    layer = network.add_identity(network.add_input(HOSTILE, trt.float32, ()))
    layer.name = layer.metadata = HOSTILE
    return mark(network, **{HOSTILE + "y": layer.get_output(0)})


def test_the_page_is_one_file_that_loads_nothing(tmp_path):
    text = report(running_sum(), tmp_path / "report.html")

    assert (tmp_path / "report.html").read_text(encoding="utf-8") == text
    assert "default-src 'none'" in text
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=\"?(http|//|\w+\.js)", text)
    assert "{{" + "DATA}}" not in text


def test_a_hostile_name_stays_in_the_data(network):
    text = report(hostile(network))

    assert text.count("</script>") == 3
    assert "onerror=" not in text.replace("\\u003cimg src=x onerror=", "")
    assert "\u2028" not in text


def test_words_of_the_template_in_names_stay_names(network):
    network.name = "{{SCRIPT}}{{DATA}}"
    mark(network, y=network.add_identity(network.add_input("x", trt.float32, ())).get_output(0))

    assert "{{SCRIPT}}{{DATA}}" in report(network)


def test_the_page_opens_with_loops_in_loops(opened):
    tab = opened(nested())

    assert tab.locator(".node.loop .node.loop").count() == 1
    assert tab.locator(".edge.back").count() >= 1


def test_a_box_folds_and_unfolds(opened):
    tab = opened(running_sum())
    before = tab.locator(".node").count()

    tab.locator(".node.loop > rect").click(position={"x": 5, "y": 5})
    folded = tab.locator(".node").count()
    tab.locator(".node.loop > rect").click(position={"x": 5, "y": 5})

    assert folded < before
    assert tab.locator(".node").count() == before


def test_search_shows_the_node_in_a_large_network_within_three_seconds(opened, network):
    x = network.add_input("x", trt.float32, ())
    for _ in range(5000):
        x = network.add_identity(x).get_output(0)
    network[4321].name = "needle"
    network.mark_output(x)
    tab = opened(network)

    began = time.perf_counter()
    tab.reload()
    tab.wait_for_selector("body[data-ready]")
    seconds = time.perf_counter() - began
    tab.fill("#search", "needle")
    tab.press("#search", "Enter")

    assert seconds < 3
    assert tab.inner_text("#chosen-name") == "needle"
    assert tab.locator(".node.chosen text").first.text_content() == "Identity  needle"


def test_a_click_shows_values_trip_by_trip(opened):
    tab = opened(running_sum(), {"x": X}, ["reference"])

    tab.locator(".node.entry:has-text('Recurrence') > rect").click()

    assert tab.locator("aside .chart").count() >= 1
    assert "Recurrence" in tab.inner_text("aside")


def test_the_network_after_the_passes_opens_beside_the_one_before(opened):
    tab = opened(lstm(), {"x": np.ones((3, 3), np.float32)})

    tab.click("#compare")

    assert tab.locator("dialog tr.replace, dialog tr.insert, dialog tr.delete").count() > 0
    assert tab.inner_text("dialog .place") == "1 of 5"
    tab.click("dialog .next")
    assert tab.inner_text("dialog .place") == "2 of 5"
    hidden = tab.locator("dialog tr.equal:not(:visible)").count()
    tab.locator("dialog .fold button").first.click()
    assert tab.locator("dialog tr.equal:not(:visible)").count() < hidden
    tab.click("dialog button:text('Close')")
    assert tab.locator("dialog").count() == 0


def test_a_difference_opens_with_its_numbers_and_jumps(opened, tmp_path):
    report_difference(running_sum(), lstm(), tmp_path / "difference.html")
    tab = opened(running_sum())
    tab.goto((tmp_path / "difference.html").as_uri())
    tab.wait_for_selector("body[data-ready]", timeout=10_000)

    tab.press("body", "n")
    assert tab.locator("tr.current").count() == 1
    assert tab.inner_text("#numbers").startswith("\tbefore\tafter")


def test_conditions_and_limits_have_edges(opened):
    tab = opened(collatz())

    # to the border of the loop, and to both branches
    assert tab.locator(".edge.control").count() == 3


def test_a_nest_of_a_thousand_loops_opens(opened):
    tab = opened(deep(1000))

    tab.click("#open-all")

    assert tab.locator(".node.loop").count() > 100


@pytest.mark.parametrize("button", ["#open-all", "#fold-all"])
def test_unfolding_a_large_network_shows_a_layer(opened, network, button):
    x = network.add_input("x", trt.float32, ())
    for number in range(900):
        x = network.add_identity(x).get_output(0)
        network[number].name = f"block{number // 30}/part{number}"
    network.mark_output(x)
    tab = opened(network)

    tab.click(button)

    area = tab.locator("#graph").bounding_box()
    boxes = [node.bounding_box() for node in tab.locator(".node:not(.box)").all()[:3]]
    assert any(0 < box["y"] < area["y"] + area["height"] and 0 < box["x"] < area["width"] for box in boxes)


def test_sections_of_constants_are_shown_with_the_constants(opened, network):
    x = network.add_input("x", trt.float32, ())
    parts = [network.add_constant((), np.float32(number)).get_output(0) for number in range(200)]
    for part in parts:
        x = network.add_elementwise(x, part, trt.ElementWiseOperation.SUM).get_output(0)
    network.mark_output(x)
    tab = opened(network)
    tab.click("#fold-all")
    few = tab.locator(".node.section").count()

    tab.check("#constants")

    assert tab.locator(".node.section").count() > few


def test_hostile_names_run_nothing(opened, network):
    tab = opened(hostile(network), {HOSTILE: np.float32(1)})
    tab.fill("#search", "img")
    tab.press("#search", "Enter")

    assert tab.title() != "owned"
    assert tab.locator("img").count() == 0
