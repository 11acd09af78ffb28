"""``pycuda.autoinit``: the device and a context."""

from netloop.tools.compat.pycuda_driver import Device

device = Device(0)
context = device.make_context()
