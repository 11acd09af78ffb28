"""Plans: files of networks with their weights, which load to the same network or not at all."""

from netloop.model.plan import Plan as Plan
from netloop.model.plan import draw as draw
from netloop.model.plan import dumps as dumps
from netloop.model.plan import load as load
from netloop.model.plan import loads as loads
from netloop.model.plan import naming as naming
from netloop.model.plan import read as read
from netloop.model.plan import read_file as read_file
from netloop.model.plan import save as save
