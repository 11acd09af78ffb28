"""OpenVINO models: ``netloop.openvino.load("model.xml")`` imports one, ``save(network, path)`` exports one."""

from netloop.formats.openvino import load as load
from netloop.formats.openvino import operators_page as operators_page
from netloop.formats.openvino import save as save
from netloop.formats.openvino import supports as supports
from netloop.formats.openvino import to_model as to_model
