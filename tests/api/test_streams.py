"""Plans are written to streams and read from them, in pieces of any size."""

import io

import pytest

import netloop as trt
from tests.support import networks
from tests.support.log import Log


class Writer(trt.IStreamWriter):
    """Keep the bytes written, at most a number of them at once."""

    def __init__(self, most=None):
        super().__init__()
        self.taken, self.calls, self.most = b"", 0, most

    def write(self, data):
        self.calls += 1
        piece = data[: self.most]
        self.taken += piece
        return len(piece)


class Reader(trt.IStreamReaderV2):
    """Read bytes, at most a number of them at once; fail on a read past the end."""

    def __init__(self, data, most=None):
        super().__init__()
        self.file, self.size, self.most = io.BytesIO(data), len(data), most

    def read(self, num_bytes, stream):
        assert self.file.tell() + num_bytes <= self.size
        return self.file.read(num_bytes if self.most is None else min(num_bytes, self.most))

    def seek(self, offset, where):
        self.file.seek(offset, int(where))
        return True


def build_to(writer, log=None):
    builder = trt.Builder(log or Log())
    return builder.build_serialized_network_to_stream(networks.swap(), builder.create_builder_config(), writer)


def plan():
    builder = trt.Builder(Log())
    return builder.build_serialized_network(networks.swap(), builder.create_builder_config())


def load(reader, log=None):
    return trt.Runtime(log or Log()).deserialize_cuda_engine(reader)


# ---------------------------------------------------------------------- writing


def test_writer_that_takes_all_is_called_once():
    assert build_to(writer := Writer())
    assert (writer.taken, writer.calls) == (plan(), 1)


def test_writer_that_takes_a_part_gets_the_rest():
    assert build_to(writer := Writer(1000))
    assert writer.taken == plan()
    assert writer.calls > 2


@pytest.mark.parametrize("answer", [None, 0, -1, 10**9, "all"])
def test_writer_that_returns_no_count_ends_the_build(answer):
    class Silent(trt.IStreamWriter):
        def write(self, data):
            return answer

    assert build_to(Silent(), log := Log()) is False
    assert log.errors()[0].startswith("NL722: the stream Silent was given")


def test_writer_that_raises_ends_the_build_with_its_words():
    class Full(trt.IStreamWriter):
        def write(self, data):
            raise OSError("no space left")

    assert build_to(Full(), log := Log()) is False
    assert "the stream Full raised OSError('no space left')" in log.errors()[0]


def test_writer_without_a_method_is_reported():
    assert build_to(trt.IStreamWriter(), log := Log()) is False
    assert "IStreamWriter overrides no write(data)" in log.errors()[0]


def test_network_with_errors_reaches_no_writer():
    builder = trt.Builder(log := Log())
    network = builder.create_network()
    network.add_loop().add_recurrence(network.add_input("x", trt.float32, ()))
    config, writer = builder.create_builder_config(), Writer()

    assert builder.build_serialized_network_to_stream(network, config, writer) is False
    assert writer.calls == 0
    assert log.errors()


def test_other_objects_than_writers_are_refused():
    with pytest.raises(TypeError, match="writer must be IStreamWriter"):
        build_to(io.BytesIO())


# ---------------------------------------------------------------------- reading


@pytest.mark.parametrize("most", [None, 100, 1])
def test_plan_is_read_in_pieces_and_not_beyond_its_end(most):
    engine = load(reader := Reader(plan(), most))

    assert engine.num_layers == networks.swap().num_layers
    assert reader.file.tell() == reader.size


def test_reader_has_a_keyword_of_its_own():
    runtime = trt.Runtime(Log())

    assert runtime.deserialize_cuda_engine(stream_reader_v2=Reader(plan())) is not None
    assert runtime.deserialize_cuda_engine(stream_reader=FirstReader(plan())) is not None


class FirstReader(trt.IStreamReader):
    """A reader of TensorRT 10, which is given no stream."""

    def __init__(self, data, most=None):
        super().__init__()
        self.file, self.most = io.BytesIO(data), most

    def read(self, size):
        return self.file.read(size if self.most is None else min(size, self.most))


@pytest.mark.parametrize("most", [None, 100])
def test_reader_of_the_first_version_reads_a_plan(most):
    assert load(FirstReader(plan(), most)).num_layers == networks.swap().num_layers


def test_reader_of_the_first_version_that_fails_gives_none():
    assert load(FirstReader(plan()[:-1]), log := Log()) is None
    assert "NL721: the stream FirstReader" in log.errors()[0]
    assert load(trt.IStreamReader(), log := Log()) is None
    assert "IStreamReader overrides no read(size)" in log.errors()[0]


def test_plan_may_begin_in_the_middle_of_a_stream_and_end_before_it_does():
    reader = Reader(b"head" + plan() + b"tail")
    reader.seek(4, trt.SeekPosition.SET)

    assert load(reader) is not None
    assert reader.file.read() == b"tail"


@pytest.mark.parametrize("kept", [0, 10, 200, -1])
def test_stream_that_ends_too_early_gives_none_with_the_byte(kept):
    reader = Reader(plan()[:kept])
    reader.size = 10**9

    assert load(reader, log := Log()) is None
    assert "NL721" in log.errors()[0]
    assert f"byte {len(reader.file.getvalue())} of the plan" in log.errors()[0]


def test_stream_of_something_else_gives_none():
    assert load(Reader(b"no plan" * 1000), log := Log()) is None
    assert "NL711: the file does not start like a plan" in log.errors()[0]


def test_damage_in_a_stream_is_found():
    damaged = bytearray(plan())
    damaged[-200] ^= 1

    assert load(Reader(bytes(damaged)), log := Log()) is None
    assert "NL711" in log.errors()[0]


@pytest.mark.parametrize("given", [None, 3, "text"])
def test_reader_that_gives_no_bytes_gives_none(given):
    class Odd(trt.IStreamReaderV2):
        def read(self, num_bytes, stream):
            return given

    assert load(Odd(), log := Log()) is None
    assert "the stream Odd raised TypeError" in log.errors()[0]


def test_reader_that_gives_too_much_gives_none():
    class Generous(trt.IStreamReaderV2):
        def read(self, num_bytes, stream):
            return bytes(num_bytes + 1)

    assert load(Generous(), log := Log()) is None
    assert "the stream Generous was asked for up to" in log.errors()[0]


def test_reader_without_methods_is_reported():
    assert load(trt.IStreamReaderV2(), log := Log()) is None
    assert "IStreamReaderV2 overrides no read(num_bytes, stream)" in log.errors()[0]
    assert trt.IStreamReaderV2().seek(0, trt.SeekPosition.SET) is False
