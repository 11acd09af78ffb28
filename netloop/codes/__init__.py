"""What each code of a finding stands for.

The rules of ``netloop/check`` enter themselves, from their docstrings. The codes here are raised elsewhere.
"""

from netloop.codes import files as files
from netloop.codes import networks as networks
from netloop.codes.register import CODES as CODES
from netloop.codes.register import Code as Code
from netloop.codes.register import enter as enter
from netloop.codes.register import reason as reason
