"""OpenVINO models: ``netloop.openvino.load("model.xml")`` imports one, ``save(network, path)`` exports one."""

from netloop.formats.openvino.exporter import save as save
from netloop.formats.openvino.exporter import to_model as to_model
from netloop.formats.openvino.importer.load import load as load
from netloop.formats.openvino.importer.operators import supports as supports
from netloop.formats.openvino.operator_page import operators_page as operators_page
