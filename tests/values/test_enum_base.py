import pickle

import pytest

import netloop as trt


def test_misspelt_member_lists_the_members():
    with pytest.raises(AttributeError, match="TripLimit has no member 'COUNTS'; it has COUNT, WHILE"):
        _ = trt.TripLimit.COUNTS


def test_members_and_missing_special_names_are_as_in_any_enumeration():
    assert trt.TripLimit["COUNT"] is trt.TripLimit.COUNT is trt.TripLimit(0)
    assert pickle.loads(pickle.dumps(trt.TripLimit.WHILE)) is trt.TripLimit.WHILE
    assert not hasattr(trt.TripLimit, "__array__")
