"""The check of addresses on a GPU runs to its end without one, on the fake runtime."""

import pytest

from netloop.process.cuda_runtime import has_gpu
from tests.gpu import check_addresses


@pytest.mark.skipif(has_gpu(), reason="there is a GPU, on which it runs as a program")
def test_all_facts_hold_on_the_fake_runtime(capsys):
    failed = check_addresses.main()
    lines = capsys.readouterr().out.splitlines()

    assert failed == 0, lines
    assert len(lines) == len(check_addresses.FACTS) + 2
    assert all(line.startswith("ok ") for line in lines[1:-1])
