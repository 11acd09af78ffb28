"""Findings: what is wrong, where, why and what to do; and the register of their codes.

The rules of ``netloop/check`` register themselves, from their docstrings. The codes here are raised elsewhere.
"""

from netloop.diagnostics import file_codes as file_codes
from netloop.diagnostics import network_codes as network_codes
from netloop.diagnostics.finding import ExecutionError as ExecutionError
from netloop.diagnostics.finding import FileFormatError as FileFormatError
from netloop.diagnostics.finding import Finding as Finding
from netloop.diagnostics.finding import InputError as InputError
from netloop.diagnostics.finding import LayerError as LayerError
from netloop.diagnostics.finding import ModelError as ModelError
from netloop.diagnostics.finding import NetloopError as NetloopError
from netloop.diagnostics.finding import NetworkError as NetworkError
from netloop.diagnostics.finding import Severity as Severity
from netloop.diagnostics.finding import SourceLocation as SourceLocation
from netloop.diagnostics.finding import did_you_mean as did_you_mean
from netloop.diagnostics.finding import listed as listed
from netloop.diagnostics.finding import require as require
from netloop.diagnostics.registry import CODES as CODES
from netloop.diagnostics.registry import Code as Code
from netloop.diagnostics.registry import enter as enter
from netloop.diagnostics.registry import reason as reason
