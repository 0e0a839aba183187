"""Whatever members do, in whatever order, and whenever their coordinator dies: what must hold, holds."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings

from cluster.coordinator.coordinator import GroupCoordinator
from cluster.machine import Received, Send
from cluster.sim.world import START_MS
from cluster.wire.apis import ApiKey, request
from cluster.wire.codec import encode
from cluster.wire.fields import Message
from cluster.wire.groups import DescribeGroupsRequest, HeartbeatRequest, ListGroupsRequest, SyncGroupRequest
from cluster.wire.offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.properties.crew import Crew, Schedule, remembered, schedules

ROOT = Path(__file__).parents[2]
EXAMPLES: list[Schedule] = [  # what chance finds rarely
    [(0, "a", "gather"), (5, "s", "restart"), (5, "s", "sync")],
    [
        (0, "a", "gather"),
        (0, "a", "freeze"),
        (0, "a", "commit"),
        (5, "c", "restart"),
        (5, "c", "join"),
        (7000, "a", "heartbeat"),
        (0, "a", "thaw"),
        (5, "a", "join"),
        (0, "b", "join"),
        (0, "s", "join"),
    ],
    [
        (0, "a", "gather"),
        (5, "a", "join"),
        (0, "b", "join"),
        (0, "c", "join"),
        (0, "s", "join"),
        (0, "a", "freeze"),
        (5, "a", "sync"),
        (5, "c", "change"),
        (5, "a", "join"),
        (0, "b", "join"),
        (0, "s", "join"),
        (5, "b", "sync"),
        (0, "a", "thaw"),
        (5, "a", "sync"),
    ],
    [
        (0, "a", "gather"),
        (500, "a", "coordinator"),
        (0, "b", "heartbeat"),
        (5, "a", "sync"),
        (7000, "a", "gather"),
        (0, "a", "delete"),
    ],
    [
        (0, "a", "gather"),
        (0, "a", "leave"),
        (0, "b", "leave"),
        (0, "c", "leave"),
        (7000, "s", "heartbeat"),
        (0, "a", "delete"),
        (5, "a", "gather"),
    ],
]


def with_examples(test: Callable[[Schedule], None]) -> Callable[[Schedule], None]:
    for schedule in EXAMPLES:
        test = example(schedule)(test)
    return test


@settings(max_examples=150)
@given(schedules)
@with_examples
def test_a_partition_has_one_owner_in_a_generation(schedule: Schedule) -> None:
    crew = Crew().play(schedule).rest()
    owner: dict[tuple[int, int, str, int], str] = {}
    for life, generation, member_id, assignment in crew.owned:
        for topic, partitions in assignment.partitions.items():
            for partition in partitions:
                assert owner.setdefault((life, generation, topic, partition), member_id) == member_id


@settings(max_examples=150)
@given(schedules)
@with_examples
def test_every_request_is_answered_once_unless_its_sender_or_its_coordinator_is_gone(schedule: Schedule) -> None:
    crew = Crew().play(schedule).rest()
    assert max(crew.hand.answers.values()) == 1
    calls = list(crew.hand.calls.values())
    for number, call in enumerate(calls):
        if call.answered_at is None:
            superseded = any(
                later.envelope.api_key == call.envelope.api_key and later.member == call.member
                for later in calls[number + 1 :]
            )
            coordinator_died = any(death >= call.asked_at for death in crew.deaths)
            assert call.envelope.api_key in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP) or coordinator_died, call
            assert superseded or coordinator_died, call


@settings(max_examples=150)
@given(schedules)
@with_examples
def test_persisted_generations_only_grow(schedule: Schedule) -> None:
    crew = Crew().play(schedule).rest()
    newest = 0
    for generation in crew.logged_generations():
        assert generation is None or generation >= newest
        newest = 0 if generation is None else generation


@settings(max_examples=100)
@given(schedules)
@with_examples
def test_replaying_the_log_gives_what_the_coordinator_remembers_after_every_record(schedule: Schedule) -> None:
    crew = Crew()
    for step in schedule:
        crew.play([step])
        if any(shard.uncommitted() for shard in crew.coordinator.shards.values()):
            continue
        mine, theirs = remembered(crew.coordinator), remembered(crew.twin())
        assert mine["offsets"] == theirs["offsets"]
        assert mine["groups"].keys() == theirs["groups"].keys()
        for group_id, group in mine["groups"].items():
            assert group in (theirs["groups"][group_id], "rebalancing")


@settings(max_examples=60)
@given(schedules)
@with_examples
def test_the_same_schedule_gives_the_same_bytes(schedule: Schedule) -> None:
    assert digest(schedule) == digest(schedule)


def digest(schedule: Schedule) -> str:
    crew = Crew().play(schedule).rest()
    hashed = hashlib.sha256()
    for now, envelope in crew.frames:
        hashed.update(f"{now}".encode() + encode(envelope))
    return hashed.hexdigest()


A_BUSY_DAY: Schedule = [
    (delay, who, what)
    for _ in range(6)
    for delay, who, what in [
        (0, "a", "join"),
        (1, "b", "join"),
        (5, "a", "join"),
        (1, "s", "restart"),
        (500, "c", "join"),
        (1, "c", "join"),
        (3000, "a", "join"),
        (1, "a", "sync"),
        (1, "b", "sync"),
        (1, "s", "sync"),
        (500, "a", "commit"),
        (1, "b", "change"),
        (500, "a", "heartbeat"),
        (7000, "s", "heartbeat"),
        (1, "a", "join"),
        (500, "a", "coordinator"),
        (1, "a", "leave"),
        (3000, "b", "fetch"),
    ]
]


@pytest.mark.parametrize("hash_seed", ["0", "1", "4711"])
def test_the_bytes_do_not_depend_on_the_hash_seed(hash_seed: str) -> None:
    code = "from tests.properties.test_groups import A_BUSY_DAY, digest; print(digest(A_BUSY_DAY))"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    printed = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == digest(A_BUSY_DAY)


@settings(max_examples=80)
@given(schedules)
@with_examples
def test_a_second_coordinator_answers_as_the_first_would(schedule: Schedule) -> None:
    crew = Crew().play(schedule)
    crew.freeze(False)
    crew.wait(1)
    if "rebalancing" in remembered(crew.coordinator)["groups"].values():
        return
    first, second = crew.coordinator, crew.twin()
    for probe in probes(first):
        assert answers(first, probe) == answers(second, probe)


def probes(coordinator: GroupCoordinator) -> Iterator[Message]:
    """Questions about everything that a failover must not change."""
    yield OffsetFetchRequest(groups=(OffsetFetchRequestGroup("main"),))
    yield DescribeGroupsRequest(("main",))
    yield ListGroupsRequest()
    yield HeartbeatRequest("main", 1, "nobody")
    for shard in coordinator.shards.values():
        for group in shard.latest.groups.values():
            for member in group.members.values():
                yield HeartbeatRequest("main", group.generation, member.member_id, member.instance_id)
                yield HeartbeatRequest("main", group.generation + 1, member.member_id)
                yield SyncGroupRequest(
                    "main", group.generation, member.member_id, None, "consumer", group.protocol_name
                )


def answers(coordinator: GroupCoordinator, body: Message) -> list[object]:
    asked = request(body, source="hand", destination="coordinator-1", correlation_id=1)
    return [
        effect.envelope.body
        for effect in coordinator.step(START_MS, Received("hand", asked))
        if isinstance(effect, Send)
    ]
