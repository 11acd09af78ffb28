"""Timing caches hold the entries that a script adds, and go through files."""

import math

import pytest

import netloop as trt
from tests.support.log import Log

KEY = trt.TimingCacheKey.parse("0x" + "0123456789abcdef" * 2)


def config():
    return trt.Builder(Log()).create_builder_config()


def test_timing_cache_goes_through_a_file():
    cache = config().create_timing_cache(b"")
    assert cache.update(KEY, trt.TimingCacheValue(2**64 - 1, 0.25))
    again = config().create_timing_cache(cache.serialize())

    assert again.queryKeys() == [KEY]
    assert again.query(KEY) == trt.TimingCacheValue(2**64 - 1, 0.25)
    assert again.serialize() == cache.serialize()


def test_timing_cache_of_others_is_none():
    assert config().create_timing_cache(b"\0" * 64) is None
    assert config().create_timing_cache(b'{"format":"netloop timing cache","entries":[["0x","1","1"]]}') is None


def test_key_that_is_not_there_has_no_time():
    value = config().create_timing_cache(b"").query(KEY)

    assert value.tacticHash == 0
    assert math.isnan(value.timingMSec)


def test_caches_are_combined_and_reset():
    one, other = config().create_timing_cache(b""), config().create_timing_cache(b"")
    other.update(KEY, trt.TimingCacheValue(1, 2.0))

    assert one.combine(other, ignore_mismatch=False)
    assert one.queryKeys() == [KEY]
    assert one.reset()
    assert (one.queryKeys(), other.queryKeys()) == ([], [KEY])


def test_cache_of_another_machine_is_combined_only_if_that_is_ignored():
    one, other = config().create_timing_cache(b""), config().create_timing_cache(b"")
    one.machines, other.machines = frozenset({"here"}), frozenset({"there"})
    other.update(KEY, trt.TimingCacheValue(1, 2.0))

    assert not one.combine(other, ignore_mismatch=False)
    assert one.queryKeys() == []
    assert one.combine(other, ignore_mismatch=True)
    assert one.queryKeys() == [KEY]
    assert one.machines == {"here", "there"}


def test_machines_go_through_a_file():
    cache = config().create_timing_cache(b"")
    cache.machines = frozenset({"here", "there"})

    assert config().create_timing_cache(cache.serialize()).machines == cache.machines


@pytest.mark.parametrize("text", ["", "0x12", "g" * 32])
def test_key_of_another_form_is_refused(text):
    with pytest.raises(ValueError, match="hex"):
        trt.TimingCacheKey.parse(text)


def test_key_is_printed_as_it_is_parsed():
    assert trt.TimingCacheKey.parse(str(KEY)) == KEY
