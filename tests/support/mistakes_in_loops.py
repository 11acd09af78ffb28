"""Mistakes in loops and conditionals; see ``mistakes.py``."""

import numpy as np

import netloop as trt

SUM, PROD, LESS = trt.ElementWiseOperation.SUM, trt.ElementWiseOperation.PROD, trt.ElementWiseOperation.LESS
COUNT, WHILE = trt.TripLimit.COUNT, trt.TripLimit.WHILE
LAST_VALUE, CONCATENATE = trt.LoopOutput.LAST_VALUE, trt.LoopOutput.CONCATENATE


def new_network():
    return trt.Builder(trt.Logger()).create_network()


def number(network, value, dtype=np.int32):
    return network.add_constant((), np.array(value, dtype)).get_output(0)


def add(network, a, b):
    return network.add_elementwise(a, b, SUM).get_output(0)


def mark(network, tensor, name="y"):
    tensor.name = name
    network.mark_output(tensor)
    return network


def counting_loop(network, trips=3, name="loop"):
    loop = network.add_loop()
    loop.name = name
    loop.add_trip_limit(number(network, trips), COUNT)
    return loop


def running_sum(network, loop, step):
    total = loop.add_recurrence(number(network, 0))
    total.set_input(1, add(network, total.get_output(0), step))
    return total.get_output(0)


# ---------------------------------------------------------------------------- values that leave a loop


def recurrence_marked():
    """a recurrence is marked as an output of the network"""
    network = new_network()
    return mark(network, running_sum(network, counting_loop(network), number(network, 2)))


def body_read_outside():
    """a layer after the loop reads a tensor of the body"""
    network = new_network()
    total = running_sum(network, counting_loop(network), number(network, 2))
    total.name = "total"
    doubled = add(network, total, total)
    return mark(network, add(network, doubled, number(network, 1)))


def layer_of_the_body_marked():
    """a layer of the body, which is no recurrence, is marked as an output"""
    network = new_network()
    loop = counting_loop(network)
    element = loop.add_iterator(network.add_input("x", trt.int32, (3,))).get_output(0)
    return mark(network, add(network, element, number(network, 1)))


def next_value_marked():
    """the next value of a recurrence is marked as an output"""
    network = new_network()
    loop = counting_loop(network)
    total = loop.add_recurrence(number(network, 0))
    after = add(network, total.get_output(0), number(network, 2))
    total.set_input(1, after)
    return mark(network, after)


def outer_loop_escapes():
    """the value leaves the inner loop only, and not the outer"""
    network = new_network()
    outer, inner = counting_loop(network, 3, "outer"), counting_loop(network, 4, "inner")
    i = running_sum(network, outer, number(network, 1))
    total = running_sum(network, inner, i)
    return mark(network, inner.add_loop_output(total, LAST_VALUE).get_output(0))


def body_of_one_loop_in_another():
    """the body of loop B reads a tensor of the body of loop A"""
    network = new_network()
    a, b = counting_loop(network, 3, "A"), counting_loop(network, 4, "B")
    sa = running_sum(network, a, number(network, 1))
    sa.name = "sa"
    total = b.add_recurrence(number(network, 0))
    total.set_input(1, add(network, total.get_output(0), sa))
    return mark(network, b.add_loop_output(total.get_output(0), LAST_VALUE).get_output(0), "b")


def two_loops_mixed():
    """one layer reads tensors of the bodies of two loops"""
    network = new_network()
    first = running_sum(network, counting_loop(network, 3, "A"), number(network, 1))
    second = running_sum(network, counting_loop(network, 3, "B"), number(network, 1))
    first.name, second.name = "first", "second"
    return mark(network, add(network, first, second))


def conditional_on_a_body():
    """a conditional outside of the loop has a condition of its body"""
    network = new_network()
    total = running_sum(network, counting_loop(network), number(network, 2))
    x = network.add_input("x", trt.int32, ())
    choice = network.add_if_conditional()
    choice.set_condition(network.add_elementwise(total, number(network, 2), LESS).get_output(0))
    return mark(network, choice.add_output(x, number(network, 0)).get_output(0))


def stacked_without_length():
    """a CONCATENATE output has no length"""
    network = new_network()
    loop = counting_loop(network)
    output = loop.add_loop_output(running_sum(network, loop, number(network, 2)), CONCATENATE)
    return mark(network, output.get_output(0))


def last_value_of_the_next_value():
    """LAST_VALUE of the next value, instead of the recurrence"""
    network = new_network()
    loop = counting_loop(network)
    total = loop.add_recurrence(number(network, 0))
    after = add(network, total.get_output(0), number(network, 2))
    total.set_input(1, after)
    return mark(network, loop.add_loop_output(after, LAST_VALUE).get_output(0))


def stacked_too_short():
    """the length of a CONCATENATE output is less than the trip count"""
    network = new_network()
    loop = counting_loop(network, 5)
    output = loop.add_loop_output(running_sum(network, loop, number(network, 2)), CONCATENATE)
    output.set_input(1, number(network, 4))
    return mark(network, output.get_output(0))


# ---------------------------------------------------------------------------- limits, recurrences and iterators


def no_limit():
    """a loop has no trip limit"""
    network = new_network()
    loop = network.add_loop()
    return mark(network, loop.add_loop_output(running_sum(network, loop, number(network, 1)), LAST_VALUE).get_output(0))


def count_of_floats():
    """the COUNT limit is a floating-point number"""
    network = new_network()
    loop = network.add_loop()
    loop.add_trip_limit(number(network, 3, np.float32), COUNT)
    return mark(network, loop.add_loop_output(running_sum(network, loop, number(network, 1)), LAST_VALUE).get_output(0))


def count_of_bools():
    """the COUNT limit is a bool"""
    network = new_network()
    loop = network.add_loop()
    loop.add_trip_limit(number(network, True, np.bool_), COUNT)
    return mark(network, loop.add_loop_output(running_sum(network, loop, number(network, 1)), LAST_VALUE).get_output(0))


def count_of_one_axis():
    """the COUNT limit has the shape (1,)"""
    network = new_network()
    loop = network.add_loop()
    loop.add_trip_limit(network.add_constant((1,), np.array([3], np.int32)).get_output(0), COUNT)
    return mark(network, loop.add_loop_output(running_sum(network, loop, number(network, 1)), LAST_VALUE).get_output(0))


def while_of_ints():
    """the WHILE limit is an integer"""
    network = new_network()
    loop = network.add_loop()
    total = running_sum(network, loop, number(network, 1))
    loop.add_trip_limit(total, WHILE)
    return mark(network, loop.add_loop_output(total, LAST_VALUE).get_output(0))


def count_as_int():
    """a Python number instead of the COUNT tensor"""
    new_network().add_loop().add_trip_limit(3, COUNT)


def limit_swapped():
    """the arguments of add_trip_limit are swapped"""
    network = new_network()
    network.add_loop().add_trip_limit(COUNT, number(network, 3))


def initial_value_as_number():
    """a Python number instead of an initial value"""
    new_network().add_loop().add_recurrence(0.0)


def loop_output_swapped():
    """the arguments of add_loop_output are swapped"""
    network = new_network()
    loop = counting_loop(network)
    loop.add_loop_output(LAST_VALUE, running_sum(network, loop, number(network, 1)))


def layer_in_place_of_its_output():
    """a layer instead of its output"""
    network = new_network()
    loop = counting_loop(network)
    loop.add_loop_output(loop.add_recurrence(number(network, 0)), LAST_VALUE)


def no_next_value():
    """a recurrence has no next value"""
    network = new_network()
    loop = counting_loop(network)
    total = loop.add_recurrence(number(network, 0)).get_output(0)
    return mark(network, loop.add_loop_output(total, LAST_VALUE).get_output(0))


def state_of_two_types():
    """the initial value is int32 and the next value float32"""
    network = new_network()
    loop = counting_loop(network)
    total = loop.add_recurrence(number(network, 0))
    total.set_input(1, number(network, 1, np.float32))
    return mark(network, loop.add_loop_output(total.get_output(0), LAST_VALUE).get_output(0))


def state_that_grows():
    """a state grows by concatenation"""
    network = new_network()
    loop = counting_loop(network)
    one = network.add_constant((1,), np.array([1], np.int32)).get_output(0)
    rows = loop.add_recurrence(one)
    rows.set_input(1, network.add_concatenation([rows.get_output(0), one]).get_output(0))
    return mark(network, loop.add_loop_output(rows.get_output(0), LAST_VALUE).get_output(0))


def iterator_over_the_body():
    """an iterator reads a tensor of its own loop"""
    network = new_network()
    loop = counting_loop(network)
    state = loop.add_recurrence(network.add_input("x", trt.int32, (3,)))
    state.set_input(1, state.get_output(0))
    element = loop.add_iterator(state.get_output(0)).get_output(0)
    total = running_sum(network, loop, element)
    return mark(network, loop.add_loop_output(total, LAST_VALUE).get_output(0))


def iterator_past_the_end():
    """a loop has more iterations than its iterator has elements"""
    network = new_network()
    loop = counting_loop(network, 5)
    element = loop.add_iterator(network.add_input("x", trt.int32, (3,))).get_output(0)
    total = running_sum(network, loop, element)
    return mark(network, loop.add_loop_output(total, LAST_VALUE).get_output(0))


def iterator_over_a_scalar():
    """an iterator over a tensor without axes"""
    network = new_network()
    loop = counting_loop(network)
    element = loop.add_iterator(network.add_input("x", trt.int32, ())).get_output(0)
    return mark(network, loop.add_loop_output(running_sum(network, loop, element), LAST_VALUE).get_output(0))


def reverse_without_count():
    """a reverse iterator in a loop with a WHILE limit only"""
    network = new_network()
    loop = network.add_loop()
    element = loop.add_iterator(network.add_input("x", trt.int32, (3,)), reverse=True).get_output(0)
    loop.add_trip_limit(network.add_elementwise(element, number(network, 9), LESS).get_output(0), WHILE)
    return mark(network, loop.add_loop_output(running_sum(network, loop, element), LAST_VALUE).get_output(0))


def limit_by_its_own_output():
    """a loop reads its own output"""
    network = new_network()
    loop = network.add_loop()
    total = running_sum(network, loop, number(network, 1))
    last = loop.add_loop_output(total, LAST_VALUE).get_output(0)
    loop.add_trip_limit(last, COUNT)
    return mark(network, last)


def cycle_without_recurrence():
    """a layer reads its own output"""
    network = new_network()
    sum = network.add_elementwise(number(network, 1), number(network, 2), SUM)
    sum.set_input(1, sum.get_output(0))
    return mark(network, sum.get_output(0))


def condition_of_ints():
    """the condition of a conditional is an integer"""
    network = new_network()
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("x", trt.int32, ()))
    return mark(network, choice.add_output(number(network, 1), number(network, 2)).get_output(0))


def branches_of_two_types():
    """the branches of a conditional are of two types"""
    network = new_network()
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("x", trt.bool, ()))
    return mark(network, choice.add_output(number(network, 1), number(network, 2, np.float32)).get_output(0))


def no_condition():
    """a conditional has no condition"""
    network = new_network()
    choice = network.add_if_conditional()
    return mark(network, choice.add_output(number(network, 1), number(network, 2)).get_output(0))
