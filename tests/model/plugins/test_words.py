"""The parts of plugins: fields, expressions of lengths, the registry and the interfaces."""

import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.model.plugins.registry import IPluginRegistry
from tests.support.plugin_examples import CircularPadCreator, Plugin

INT32, CHAR = trt.PluginFieldType.INT32, trt.PluginFieldType.CHAR
OP = trt.DimensionOperation
EXPR = trt.IExprBuilder()


# ---------------------------------------------------------------------------- fields


def test_field_holds_an_array():
    field = trt.PluginField("pads", np.int32([[1, 2]]), INT32)

    assert (field.name, field.type, field.size) == ("pads", INT32, 2)
    assert field.data.tolist() == [[1, 2]]


def test_field_holds_text():
    assert trt.PluginField("backend", "torch", CHAR).data.tobytes() == b"torch"
    assert trt.PluginField("backend", b"torch", CHAR).size == 5


def test_bytes_are_read_as_the_type_says():
    assert trt.PluginField("n", np.int32([1, 2]).tobytes(), INT32).data.tolist() == [1, 2]
    assert trt.PluginField("n", jnp.bfloat16(1.5).tobytes(), trt.PluginFieldType.BF16).data.tolist() == [1.5]


def test_empty_array_is_of_any_type():
    assert trt.PluginField("pads", np.array([]), INT32).data.dtype == np.int32


def test_field_without_data_is_empty():
    field = trt.PluginField("pads")

    assert (field.size, field.type) == (0, trt.PluginFieldType.UNKNOWN)


def test_array_of_another_type_than_the_field_says_is_refused():
    with pytest.raises(ValueError, match="the data of the field 'pads' is int64, and its type is int32"):
        trt.PluginField("pads", np.int64([1]), INT32)


def test_part_of_an_element_is_refused():
    with pytest.raises(ValueError, match="buffer size must be a multiple of element size"):
        trt.PluginField("pads", b"123", INT32)


def test_name_and_type_of_a_field_are_checked():
    with pytest.raises(TypeError, match="the name of a field must be a str, not 3"):
        trt.PluginField(3)
    with pytest.raises(TypeError, match="the type of the field 'a' must be a member of PluginFieldType, not 5"):
        trt.PluginField("a", b"", 5)


def test_list_is_no_data():
    with pytest.raises(TypeError, match="the data of the field 'pads' must be an array or a buffer, not list"):
        trt.PluginField("pads", [1], INT32)


@pytest.mark.parametrize("cls", [trt.PluginFieldCollection, trt.PluginFieldCollection_])
def test_collection_holds_fields_alone(cls):
    field = trt.PluginField("a")

    assert list(cls([field])) == [field]
    with pytest.raises(TypeError, match="fields must be PluginField, not int"):
        cls([3])


# ---------------------------------------------------------------------------- lengths


@pytest.mark.parametrize(
    ("op", "a", "b", "wanted"),
    [
        (OP.SUM, 7, 2, 9),
        (OP.PROD, 7, 2, 14),
        (OP.MAX, 7, 2, 7),
        (OP.MIN, 7, 2, 2),
        (OP.SUB, 2, 7, -5),
        (OP.EQUAL, 7, 7, 1),
        (OP.LESS, 7, 2, 0),
        (OP.FLOOR_DIV, 7, 2, 3),
        (OP.CEIL_DIV, 7, 2, 4),
        (OP.CEIL_DIV, 8, 2, 4),
    ],
)
def test_lengths_are_combined(op, a, b, wanted):
    made = EXPR.operation(op, EXPR.constant(a), EXPR.constant(np.int32(b)))

    assert made.is_constant()
    assert made.get_constant_value() == wanted


def test_length_of_an_unknown_one_is_unknown():
    made = EXPR.operation(OP.SUM, trt.IDimensionExpr(), EXPR.constant(1))

    assert not made.is_constant()
    with pytest.raises(ValueError, match="not known yet"):
        made.get_constant_value()


def test_size_tensor_is_no_constant():
    size = EXPR.declare_size_tensor(1, EXPR.constant(2), EXPR.constant(4))

    assert size.is_size_tensor()
    assert not size.is_constant()
    with pytest.raises(TypeError, match="not a size tensor"):
        EXPR.operation(OP.SUM, size, size)


@pytest.mark.parametrize(
    "call",
    [
        lambda: EXPR.constant(1.5),
        lambda: EXPR.operation("SUM", EXPR.constant(1), EXPR.constant(1)),
        lambda: EXPR.operation(OP.SUM, 1, EXPR.constant(1)),
        lambda: EXPR.declare_size_tensor(0, EXPR.constant(1), 4),
    ],
)
def test_wrong_type_of_a_length_is_refused(call):
    with pytest.raises(TypeError):
        call()


def test_shape_has_lengths_that_are_set():
    dims = trt.DimsExprs(2)
    dims[1] = EXPR.constant(3)

    assert len(dims) == 2
    assert dims[0] is None
    assert trt.DimsExprs(dims)[1].get_constant_value() == 3


# ---------------------------------------------------------------------------- the registry


@pytest.fixture
def registry():
    return IPluginRegistry()


def test_creator_is_found_by_name_version_and_namespace(registry):
    creator = CircularPadCreator()

    assert registry.register_creator(creator, "mine")
    assert registry.get_creator("CircularPad", "1", "mine") is creator
    assert registry.get_creator("CircularPad", "1") is None
    assert registry.all_creators == registry.all_creators_recursive == [creator]
    assert creator.plugin_namespace == "mine"


def test_name_that_is_taken_is_not_given_again(registry):
    first, second = CircularPadCreator(), CircularPadCreator()

    assert registry.register_creator(first)
    assert not registry.register_creator(second)
    assert registry.get_creator("CircularPad", "1") is first


def test_creator_is_forgotten(registry):
    creator = CircularPadCreator()
    registry.register_creator(creator)

    assert registry.deregister_creator(creator)
    assert not registry.deregister_creator(creator)
    assert registry.all_creators == []


@pytest.mark.parametrize("creator", [None, CircularPadCreator, Plugin(), trt.IPluginCreatorInterface()])
def test_what_is_no_creator_is_refused(registry, creator):
    with pytest.raises(TypeError, match="derives from IPluginCreatorV3One"):
        registry.register_creator(creator)


def test_creator_without_a_name_is_refused(registry):
    with pytest.raises(ValueError, match="IPluginCreatorV3One has no name"):
        registry.register_creator(trt.IPluginCreatorV3One())


def test_one_registry_is_everywhere():
    logger = trt.Logger(trt.Logger.ERROR)

    assert trt.Builder(logger).get_plugin_registry() is trt.get_plugin_registry()
    assert trt.Runtime(logger).get_plugin_registry() is trt.get_plugin_registry()


class Resource(trt.IPluginResource):
    """Notes what happens to it."""

    def __init__(self, notes):
        self.notes = notes

    def clone(self):
        self.notes.append("clone")
        return Resource(self.notes)

    def release(self):
        self.notes.append("release")


def test_resource_is_shared_until_nobody_uses_it(registry):
    notes = []
    given = Resource(notes)

    first, second = (registry.acquire_plugin_resource("key", given) for _ in range(2))

    assert first is second is not given
    assert registry.release_plugin_resource("key") == 0
    assert notes == ["clone"]
    assert registry.release_plugin_resource("key") == 0
    assert notes == ["clone", "release"]
    assert registry.release_plugin_resource("key") == -1


def test_what_is_no_resource_is_refused(registry):
    with pytest.raises(TypeError, match="derives from IPluginResource"):
        registry.acquire_plugin_resource("key", 3)


# ---------------------------------------------------------------------------- interfaces


def test_interface_has_a_name_and_a_version():
    found = Plugin().interface_info

    assert (found.kind, found.major, found.minor) == ("PLUGIN_V3", 1, 0)
    assert Plugin().api_language is trt.APILanguage.PYTHON


@pytest.mark.parametrize(
    ("interface", "method", "count"),
    [
        (trt.IPluginV3, "clone", 0),
        (trt.IPluginV3, "get_capability_interface", 1),
        (trt.IPluginV3OneBuild, "get_output_data_types", 1),
        (trt.IPluginV3OneBuild, "get_output_shapes", 3),
        (trt.IPluginV3OneBuild, "supports_format_combination", 3),
        (trt.IPluginV3OneRuntime, "attach_to_context", 1),
        (trt.IPluginV3OneRuntime, "enqueue", 6),
        (trt.IPluginV3OneRuntime, "get_fields_to_serialize", 0),
        (trt.IPluginCreatorV3One, "create_plugin", 3),
        (trt.IPluginResource, "clone", 0),
        (trt.IPluginResource, "release", 0),
    ],
)
def test_method_without_a_default_has_to_be_overridden(interface, method, count):
    with pytest.raises(NotImplementedError, match=f"{interface.__name__} must override {method}"):
        getattr(interface(), method)(*[None] * count)


def test_rest_has_defaults():
    build, runtime = trt.IPluginV3OneBuild(), trt.IPluginV3OneRuntime()

    assert build.get_valid_tactics() == []
    assert build.get_workspace_size([], []) == 0
    assert build.configure_plugin([], []) is None
    assert runtime.set_tactic(0) is None
    assert runtime.on_shape_change([], []) is None
