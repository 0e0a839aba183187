"""What is written is read back equal; a torn tail is left out wherever it is torn; anything else is refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cluster.events import ConnectionClosed, FaultEnded, RequestSent, ResponseArrived, Stamped, TopicDeleted, kinds
from cluster.sim.journal import Level
from scenarios.eventlog import BUFFER_BYTES, BadLog, EventLog, read_file, read_log


def sample(kind: Any) -> Any:
    """Something of this type that is not its default."""
    info = msgspec.inspect.type_info(kind)
    return _value(info)


def _value(info: msgspec.inspect.Type) -> Any:
    if isinstance(info, msgspec.inspect.StructType):
        return info.cls(**{field.name: _value(field.type) for field in info.fields})
    if isinstance(info, msgspec.inspect.UnionType):
        return _value(info.types[0])
    if isinstance(info, msgspec.inspect.DictType):
        return {_value(info.key_type): _value(info.value_type)}
    if isinstance(info, msgspec.inspect.VarTupleType):
        return (_value(info.item_type), _value(info.item_type))
    plain: dict[type, Any] = {
        msgspec.inspect.IntType: 7_000_000_000,
        msgspec.inspect.StrType: "名 / name",
        msgspec.inspect.BoolType: True,
        msgspec.inspect.AnyType: ["x", 1.5, None],
    }
    return plain[type(info)]


def every_kind() -> list[Stamped]:
    return [
        Stamped(1_704_067_200_000 + number, "m", number, sample(kind)) for number, kind in enumerate(kinds().values())
    ]


def write(folder: Path, events: list[Stamped]) -> EventLog:
    log = EventLog(folder / "events")
    for each in events:
        log(each)
    log.flush()
    return log


def test_every_kind_of_event_is_read_back_equal(tmp_path: Path) -> None:
    log = write(tmp_path, every_kind())
    back = list(read_file(tmp_path / "events" / "m.msgpack"))
    assert back == every_kind()
    assert [type(each.event) for each in back] == list(kinds().values())
    assert log.events == len(kinds())
    assert log.bytes == (tmp_path / "events" / "m.msgpack").stat().st_size


def test_every_kind_is_read_back_when_nothing_but_defaults_is_said(tmp_path: Path) -> None:
    bare = [
        Stamped(
            1, "m", 1, kind(*(_value(field.type) for field in msgspec.inspect.type_info(kind).fields if field.required))
        )
        for kind in kinds().values()
    ]
    write(tmp_path, bare)
    assert list(read_log(tmp_path)) == bare


def test_a_torn_tail_is_left_out_wherever_it_is_torn(tmp_path: Path) -> None:
    events = every_kind()[:4]
    write(tmp_path, events)
    whole = (tmp_path / "events" / "m.msgpack").read_bytes()
    ends = _ends(whole)
    torn = tmp_path / "torn.msgpack"
    for cut in range(len(whole) + 1):
        torn.write_bytes(whole[:cut])
        assert list(read_file(torn)) == events[: sum(1 for end in ends if end <= cut)]


def _ends(data: bytes) -> list[int]:
    ends, position = [], 0
    while position < len(data):
        position += 4 + int.from_bytes(data[position : position + 4], "big")
        ends.append(position)
    return ends


def test_an_empty_file_has_no_events(tmp_path: Path) -> None:
    (tmp_path / "m.msgpack").touch()
    assert list(read_file(tmp_path / "m.msgpack")) == []


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b"hello, I am a text", "not an event log: a frame of 1751477356 bytes at byte 0"),
        (b"\x00\x00\x00\x01\xc1", "the frame at byte 0: MessagePack data is malformed: invalid opcode"),
        (b"\x00\x00\x00\x00", "the frame at byte 0: Input data was truncated"),
        (b"\x00\x00\x00\x01\x05", "the frame at byte 0: Expected `array`, got `int`"),
        (b"\x00\x00\x00\x02\x91\x05", "the frame at byte 0: Expected `array` of at least length 4, got 1"),
    ],
)
def test_a_file_that_is_no_event_log_is_refused_with_the_place(tmp_path: Path, written: bytes, said: str) -> None:
    path = tmp_path / "m.msgpack"
    path.write_bytes(written)
    with pytest.raises(BadLog) as problem:
        list(read_file(path))
    assert str(problem.value).startswith(f"{path}: {said}")


def test_what_stands_before_a_bad_frame_can_be_had(tmp_path: Path) -> None:
    write(tmp_path, [Stamped(1, "m", 1, TopicDeleted("t"))])
    path = tmp_path / "events" / "m.msgpack"
    size = path.stat().st_size
    unknown = msgspec.msgpack.encode((2, "m", 2, {"kind": "moon_landed"}))
    path.write_bytes(path.read_bytes() + len(unknown).to_bytes(4, "big") + unknown)
    events: Iterator[Stamped] = read_file(path)
    assert next(events) == Stamped(1, "m", 1, TopicDeleted("t"))
    with pytest.raises(BadLog, match=rf"the frame at byte {size}: Invalid value 'moon_landed'"):
        next(events)


def test_a_log_is_read_in_the_order_of_time_and_a_machines_events_as_it_saw_them(tmp_path: Path) -> None:
    events = [
        Stamped(5, "b", 1, TopicDeleted("1")),
        Stamped(5, "a", 1, TopicDeleted("2")),
        Stamped(5, "a", 2, TopicDeleted("3")),
        Stamped(4, "c", 9, TopicDeleted("4")),
        Stamped(7, "a", 3, TopicDeleted("5")),
        Stamped(6, "b", 2, TopicDeleted("6")),
    ]
    write(tmp_path, events)
    assert sorted(path.name for path in (tmp_path / "events").iterdir()) == ["a.msgpack", "b.msgpack", "c.msgpack"]
    assert [(each.at, each.machine, each.sequence) for each in read_log(tmp_path)] == [
        (4, "c", 9), (5, "a", 1), (5, "a", 2), (5, "b", 1), (6, "b", 2), (7, "a", 3),
    ]  # fmt: skip


def test_a_run_without_events_reads_as_none(tmp_path: Path) -> None:
    assert list(read_log(tmp_path)) == []


def test_much_is_written_before_the_end_and_nothing_is_lost_between(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    path = tmp_path / "m.msgpack"
    for number in range(20_000):
        log(Stamped(number, "m", number, FaultEnded(number)))
    assert path.stat().st_size > BUFFER_BYTES
    log.flush()
    log.flush()
    assert [each.sequence for each in read_file(path)] == list(range(20_000))


@pytest.mark.parametrize(
    ("level", "kept"),
    [
        (Level.COUNTS, []),
        (Level.PROTOCOL, ["JoinGroup", "JoinGroup", "Heartbeat REBALANCE_IN_PROGRESS", "closed"]),
        (
            Level.ALL,
            [
                "Fetch", "Fetch", "JoinGroup", "JoinGroup", "Heartbeat", "Heartbeat",
                "Heartbeat REBALANCE_IN_PROGRESS", "closed",
            ],
        ),
    ],
)  # fmt: skip
def test_a_level_says_which_messages_are_kept(tmp_path: Path, level: Level, kept: list[str]) -> None:
    log = EventLog(tmp_path / "events", level)
    messages = [
        RequestSent("b", "Fetch", 1, 1),
        ResponseArrived("b", "Fetch", 1),
        RequestSent("b", "JoinGroup", 1, 2),
        ResponseArrived("b", "JoinGroup", 2),
        RequestSent("b", "Heartbeat", 1, 3),
        ResponseArrived("b", "Heartbeat", 3),
        ResponseArrived("b", "Heartbeat", 4, "REBALANCE_IN_PROGRESS"),
        ConnectionClosed("b"),
    ]
    for number, message in enumerate(messages):
        log.journal(Stamped(number, "m", number, message))
    log.flush()
    assert [_short(each.event) for each in read_log(tmp_path)] == kept


def _short(event: Any) -> str:
    if isinstance(event, ConnectionClosed):
        return "closed"
    error = getattr(event, "error", "NONE")
    return str(event.api) if error == "NONE" else f"{event.api} {error}"
