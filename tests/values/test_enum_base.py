import pickle

import pytest

import netloop as trt


def test_misspelt_member_lists_the_members():
    with pytest.raises(AttributeError, match="TripLimit has no member 'COUNTS'; it has COUNT, WHILE"):
        _ = trt.TripLimit.COUNTS


def test_type_of_enumerations_has_the_name_that_it_has_in_the_bindings():
    assert type(trt.TripLimit).__name__ == "pybind11_type"


def test_members_and_missing_special_names_are_as_in_any_enumeration():
    assert trt.TripLimit["COUNT"] is trt.TripLimit.COUNT is trt.TripLimit(0)
    assert pickle.loads(pickle.dumps(trt.TripLimit.WHILE)) is trt.TripLimit.WHILE
    assert not hasattr(trt.TripLimit, "__array__")


def test_members_that_only_netloop_has_are_not_listed():
    names = [member.name for member in trt.LayerType]

    assert names == [*trt.LayerType.__members__]
    assert names[-1] == "DIST_COLLECTIVE"
    assert len(trt.LayerType) == len(names)
    assert trt.LayerType.DFT is trt.LayerType["DFT"] is trt.LayerType(104)
    assert trt.LayerType.DFT in trt.LayerType
    assert pickle.loads(pickle.dumps(trt.LayerType.DFT)) is trt.LayerType.DFT
    assert not hasattr(trt.LayerType, "OWN_KIND")
