"""The vocabulary of networks: element types, shapes, enumerations, values and findings.

``enum_base``, ``enums``; ``types``, ``dims``, ``map_types``, ``string_arrays``, ``tensor_values``; ``diagnostics``,
the findings and errors with their codes; ``checked_attributes``, ``removed_names``, ``unpicklable``, how public
objects behave.
"""
