"""Operator families: one subject has one file name in every importer and exporter, and in ``netloop/model/layers/``."""

from collections import defaultdict
from importlib import import_module
from pkgutil import iter_modules

import pytest

import netloop.formats.from_jax.rules
import netloop.formats.onnx.importer.operators
import netloop.formats.onnx.importer.operators.microsoft
import netloop.formats.onnx_graph.layers
import netloop.formats.openvino.exporter.operators
import netloop.formats.openvino.importer.operators
import netloop.model.layers
from netloop.formats.from_jax.rule_table import COMPLEX
from netloop.formats.from_jax.rule_table import TABLE as JAX
from netloop.formats.onnx.importer.operator_table import TABLE as ONNX
from netloop.formats.onnx_graph.exporter_table import EXPORTERS as LAYER_EXPORTERS
from netloop.formats.openvino.exporter.operator_table import EXPORTERS as OPENVINO_EXPORTERS
from netloop.formats.openvino.importer.operator_table import TABLE as OPENVINO
from netloop.formats.shared.families import FAMILIES, LAYER_FAMILIES

FOLDERS = [
    netloop.formats.onnx.importer.operators,
    netloop.formats.openvino.importer.operators,
    netloop.formats.onnx_graph.layers,
    netloop.formats.openvino.exporter.operators,
    netloop.formats.onnx.importer.operators.microsoft,
    netloop.formats.from_jax.rules,
]

OF_A_DOMAIN = "netloop.formats.onnx.importer.operators.ml"
"""The operators of ai.onnx.ml, whose files are named after models."""


OF_TWO_FILES = {"topk": "reduce"}
"""Files of layers whose operators are a few lines in the file of a family."""


def family(function):
    """The file of a function, or the folder of that file if the family has one."""
    _, folder, file = function.__module__.rsplit(".", 2)
    return folder if folder in FAMILIES else OF_TWO_FILES.get(file, file)


def families(table, key):
    return {family(version) for version in table.versions(key).values()}


def onnx_families():
    """The families of ONNX's own operators, by name."""
    return {name: families(ONNX, (domain, name)) for domain, name in ONNX if not domain}


def jax_families():
    """The families of JAX's primitives by name; a primitive may have another rule for complex numbers."""
    return {name: families(JAX, name) | families(COMPLEX, name) for name in (*JAX, *COMPLEX)}


def headings(folder):
    """The first line of each file."""
    files = {name: import_module(f"{folder.__name__}.{name}") for name in names_in(folder)}
    return {name: {file.__doc__.partition("\n")[0]} for name, file in files.items()}


def names_in(folder):
    """The names of the files of a folder, and of the folders in it that are no other part of the format."""
    inside = {OF_A_DOMAIN, *(other.__name__ for other in FOLDERS)}
    return {module.name for module in iter_modules(folder.__path__) if f"{folder.__name__}.{module.name}" not in inside}


def differing(*tables):
    """The operators that several tables know under one name and have in different families."""
    found = defaultdict(list)
    for table in tables:
        for name, own in table.items():
            found[name].append(own)
    return {name: entry for name, entry in sorted(found.items()) if any(own != entry[0] for own in entry)}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda value: value.__name__)
def test_files_are_named_after_families(folder):
    assert sorted(names_in(folder) - FAMILIES) == []


def test_layer_families_are_files_of_layers():
    assert sorted(set(LAYER_FAMILIES) - names_in(netloop.model.layers)) == []


def test_all_versions_of_an_operator_are_in_one_file():
    own = {name: entry for name, entry in onnx_families().items() if len(entry) > 1}
    other = {name: families(OPENVINO, name) for name in OPENVINO if len(families(OPENVINO, name)) > 1}

    rules = {name: entry for name, entry in jax_families().items() if len(entry) > 1}

    assert (own, other, rules) == ({}, {}, {})


def test_importers_have_an_operator_of_one_name_in_one_family():
    onnx = {name.lower(): entry for name, entry in onnx_families().items()}

    jax = {name.replace("_", ""): entry for name, entry in jax_families().items()}

    assert len(set(onnx) & set(OPENVINO)) > 30
    assert len(set(onnx) & set(jax)) > 30
    assert differing(onnx, {name: families(OPENVINO, name) for name in OPENVINO}, jax) == {}


def test_importers_have_one_heading_for_a_family():
    assert differing(*map(headings, FOLDERS[:2])) == {}


def test_exporter_has_an_operator_in_the_family_of_the_importer():
    known = {name: entry for name, entry in onnx_families().items() if name in OPENVINO_EXPORTERS}

    assert differing(known, {name: families(OPENVINO_EXPORTERS, name) for name in known}) == {}


def test_exporter_of_a_layer_kind_is_in_the_file_of_the_kind():
    wrong = {
        kind.__name__: (family(kind), families(LAYER_EXPORTERS, kind))
        for kind in LAYER_EXPORTERS
        if {family(kind)} != families(LAYER_EXPORTERS, kind)
    }

    assert wrong == {}
