"""``pycuda.autoinit``: the device and a context."""

from netloop.compat.pycuda_driver import Device

device = Device(0)
context = device.make_context()
