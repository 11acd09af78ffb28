"""OpenVINO models: ``netloop.openvino.load("model.xml")`` imports one, ``save(network, path)`` exports one."""

from netloop.openvino.exporter import save as save
from netloop.openvino.exporter import to_model as to_model
from netloop.openvino.importer.load import load as load
from netloop.openvino.importer.operators import supports as supports
from netloop.openvino.operator_page import operators_page as operators_page
