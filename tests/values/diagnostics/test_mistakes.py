"""What netloop says about the mistakes of beginners, compared with ``tests/data/messages.txt``.

``python -m tests.support.mistakes`` writes the file anew; read what has changed as a beginner would.
"""

import inspect

import pytest

from tests.support.mistakes import MESSAGES, message_of, mistakes

MISTAKES = dict(mistakes())
WANTED = {
    title: text.strip("\n")
    for title, _, text in (word.partition("\n") for word in MESSAGES.read_text(encoding="utf-8").split("== ")[1:])
}


@pytest.mark.parametrize("name", MISTAKES)
def test_message_is_the_expected_one(name):
    mistake = MISTAKES[name]

    assert message_of(mistake).strip("\n") == WANTED[inspect.getdoc(mistake)]


def test_every_message_is_that_of_a_mistake():
    assert list(WANTED) == [inspect.getdoc(mistake) for mistake in MISTAKES.values()]
