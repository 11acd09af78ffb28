"""OpenVINO models: ``netloop.openvino.load("model.xml")`` imports one, ``save(network, path)`` exports one."""

from netloop.formats.openvino import load, operators_page, save, supports, to_model

__all__ = ["load", "operators_page", "save", "supports", "to_model"]
