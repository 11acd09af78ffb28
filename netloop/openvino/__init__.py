"""OpenVINO models: ``netloop.openvino.load("model.xml")`` gives a network, ``save(network, path)`` writes one."""

from netloop.openvino.load import load as load
from netloop.openvino.operators import supports as supports
from netloop.openvino.page import operators_page as operators_page
from netloop.openvino.save import save as save
from netloop.openvino.save import to_model as to_model
