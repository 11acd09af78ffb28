"""Findings: what is wrong, where, why and how to fix it; and the register of their codes.

Every code is in ``registry.CODES`` with a text: its reason, an explanation and examples. A rule of
``netloop/model/check`` adds its code by the decorator ``rule``, with its docstring as the text. The codes of all other
findings have their texts in ``network_codes`` and ``file_codes``, since several places raise them. ``explain`` prints
the texts, and generates ``docs/rules.md`` from them.
"""

from netloop.values.diagnostics.finding import DeviceWarning as DeviceWarning
from netloop.values.diagnostics.finding import ExecutionError as ExecutionError
from netloop.values.diagnostics.finding import FileFormatError as FileFormatError
from netloop.values.diagnostics.finding import Finding as Finding
from netloop.values.diagnostics.finding import InputError as InputError
from netloop.values.diagnostics.finding import LayerError as LayerError
from netloop.values.diagnostics.finding import ModelError as ModelError
from netloop.values.diagnostics.finding import ModelWarning as ModelWarning
from netloop.values.diagnostics.finding import NetloopError as NetloopError
from netloop.values.diagnostics.finding import NetworkError as NetworkError
from netloop.values.diagnostics.finding import Place as Place
from netloop.values.diagnostics.finding import Severity as Severity
from netloop.values.diagnostics.finding import SourceLocation as SourceLocation
from netloop.values.diagnostics.finding import did_you_mean as did_you_mean
from netloop.values.diagnostics.finding import listed as listed
from netloop.values.diagnostics.finding import require as require
from netloop.values.diagnostics.quoting import plain as plain
from netloop.values.diagnostics.quoting import quoted as quoted
from netloop.values.diagnostics.registry import CODES as CODES
from netloop.values.diagnostics.registry import Code as Code
from netloop.values.diagnostics.registry import add_code as add_code
from netloop.values.diagnostics.registry import reason as reason
