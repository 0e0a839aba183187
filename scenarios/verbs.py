"""What can be said in a dialogue. A verb has fields with defaults, the request it becomes, and an answer to be shown.

The fields, defaults and versions are those of the recordings (see the top of tests/conformance/groups.yaml).
"""

from typing import Any, ClassVar

import msgspec

from cluster.wire import groups as group_api
from cluster.wire import log as log_api
from cluster.wire import offsets as offset_api
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from scenarios.dialogue import Dialogue
from scenarios.shown import (
    EMPTY_ID,
    Numbers,
    Wanted,
    assignment_bytes,
    assignment_shown,
    errors_shown,
    filled,
    offsets_shown,
    subscription_bytes,
    subscription_shown,
)


class Verb(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="do",
           tag=lambda name: "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")):
    """Anything that can be asked of the cluster."""

    VERSION: ClassVar[int | None] = None       # of the request, unless the step says otherwise
    TO_BROKER: ClassVar[bool] = False          # the others go to the coordinator

    version: int | None = None
    name: str | None = msgspec.field(default=None, name="async")       # do not wait for the answer; call it so
    expect_ms: int | None = None               # when the answer is expected
    member: str | None = None                  # whose request it is

    def asked_version(self) -> int:
        version = self.version if self.version is not None else self.VERSION
        return 0 if version is None else version

    def build(self, dialogue: Dialogue) -> Message:
        raise NotImplementedError

    def show(self, dialogue: Dialogue, answer: Any) -> Any:
        return {"error": answer.error_code.name}


def literal(dialogue: Dialogue, text: str) -> str:
    """A `$name` is the id behind it; any other text is itself."""
    return dialogue.id_of(text) if text.startswith("$") else text


class InGroup(Verb, frozen=True, kw_only=True):
    """A request about one group, perhaps from one of its members."""

    group: str = "main"
    member_id: str | None = None               # in place of the newest id that the member was given
    generation: int | None = None              # in place of the newest one that the member has seen
    instance: str | None = None

    def group_id(self, dialogue: Dialogue) -> str:
        dialogue.groups[self.group] = None
        return self.group

    def sender(self, dialogue: Dialogue) -> str:
        if self.member_id is not None:
            return literal(dialogue, self.member_id)
        return "" if self.member is None else dialogue.newest_id(self.member)

    def sent_generation(self, dialogue: Dialogue) -> int:
        if self.generation is not None:
            return self.generation
        return -1 if self.member is None else dialogue.member(self.member).generation


# Members


class Join(InGroup, frozen=True, kw_only=True):
    VERSION = 9

    session_ms: int = 10000
    rebalance_ms: int = 10000
    protocol_type: str = "consumer"
    protocols: dict[str, str | list[str] | Wanted] = msgspec.field(default_factory=lambda: {"range": ["t"]})
    reason: str | None = None

    def build(self, dialogue: Dialogue) -> Message:
        offered = tuple(group_api.JoinGroupRequestProtocol(name, subscription_bytes(wanted))
                        for name, wanted in self.protocols.items())
        rebalance_ms = self.rebalance_ms if self.asked_version() > 0 else -1
        return group_api.JoinGroupRequest(self.group_id(dialogue), self.session_ms, self.protocol_type, offered,
                                       rebalance_ms, self.sender(dialogue), self.instance, self.reason)

    def show(self, dialogue: Dialogue, answer: group_api.JoinGroupResponse) -> Any:
        return filled({
            "error": answer.error_code.name,
            "generation": answer.generation_id,
            "leader": dialogue.name_of(answer.leader),
            "member_id": dialogue.name_of(answer.member_id),
            "protocol": answer.protocol_name,
            "members": sorted(dialogue.name_of(each.member_id) for each in answer.members),
            "skip_assignment": answer.skip_assignment,
            "protocol_type": answer.protocol_type,
        })


class Sync(InGroup, frozen=True, kw_only=True):
    VERSION = 5

    assign: dict[str, str | Numbers] = {}
    protocol_type: str = "consumer"
    protocol: str | None = None                # in place of the one that the member joined with

    def build(self, dialogue: Dialogue) -> Message:
        joined = "range" if self.member is None else dialogue.member(self.member).protocol
        protocol = joined if self.protocol is None else self.protocol
        named = self.asked_version() >= 5
        plan = tuple(group_api.SyncGroupRequestAssignment(dialogue.id_of(member), assignment_bytes(share))
                     for member, share in self.assign.items())
        return group_api.SyncGroupRequest(
            self.group_id(dialogue), self.sent_generation(dialogue), self.sender(dialogue), self.instance,
            self.protocol_type if named else None, protocol if named else None, plan)

    def show(self, dialogue: Dialogue, answer: group_api.SyncGroupResponse) -> Any:
        return filled({"error": answer.error_code.name, "assignment": assignment_shown(answer.assignment),
                       "protocol": answer.protocol_name, "protocol_type": answer.protocol_type})


class Heartbeat(InGroup, frozen=True, kw_only=True):
    VERSION = 4

    def build(self, dialogue: Dialogue) -> Message:
        return group_api.HeartbeatRequest(self.group_id(dialogue), self.sent_generation(dialogue),
                                          self.sender(dialogue), self.instance)


class Leaving(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    member_id: str = ""
    instance: str | None = None


class Leave(InGroup, frozen=True, kw_only=True):
    VERSION = 5

    members: list[Leaving] | None = None       # a batch

    def build(self, dialogue: Dialogue) -> Message:
        if self.asked_version() < 3:
            return group_api.LeaveGroupRequest(self.group_id(dialogue), self.sender(dialogue))
        batch = [Leaving(self.sender(dialogue), self.instance)] if self.members is None else self.members
        return group_api.LeaveGroupRequest(self.group_id(dialogue), members=tuple(
            group_api.MemberIdentity(literal(dialogue, each.member_id), each.instance) for each in batch))

    def show(self, dialogue: Dialogue, answer: group_api.LeaveGroupResponse) -> Any:
        shown: dict[str, Any] = {"error": answer.error_code.name}
        if self.asked_version() >= 3:
            shown["members"] = [self._left(dialogue, each) for each in answer.members]
        return shown

    def _left(self, dialogue: Dialogue, one: group_api.MemberResponse) -> dict[str, str]:
        instance = {} if one.group_instance_id is None else {"instance": one.group_instance_id}
        return {"member_id": dialogue.name_of(one.member_id), **instance, "error": one.error_code.name}


# Offsets


class Commit(InGroup, frozen=True, kw_only=True):
    VERSION = 9

    offsets: dict[str, dict[int, int | tuple[int, int]]]       # an offset, or an offset and how long its metadata is
    metadata: str = ""
    retention_ms: int = -1

    def build(self, dialogue: Dialogue) -> Message:
        topics = tuple(
            offset_api.OffsetCommitRequestTopic(topic, tuple(
                self._committed(partition, offset) for partition, offset in partitions.items()))
            for topic, partitions in self.offsets.items())
        return offset_api.OffsetCommitRequest(self.group_id(dialogue), topics, self.sent_generation(dialogue),
                                           self.sender(dialogue), self.instance, self.retention_ms)

    def _committed(self, partition: int, offset: int | tuple[int, int]) -> offset_api.OffsetCommitRequestPartition:
        if isinstance(offset, int):
            return offset_api.OffsetCommitRequestPartition(partition, offset, committed_metadata=self.metadata)
        return offset_api.OffsetCommitRequestPartition(partition, offset[0], committed_metadata="x" * offset[1])

    def show(self, dialogue: Dialogue, answer: offset_api.OffsetCommitResponse) -> Any:
        return {"partitions": errors_shown(answer.topics)}


class Fetch(InGroup, frozen=True, kw_only=True):
    VERSION = 9

    partitions: Numbers = {}
    all: bool = False
    require_stable: bool = False
    groups: list[str] | None = None
    epoch: int | None = None

    def build(self, dialogue: Dialogue) -> Message:
        wanted = None if self.all else tuple(
            offset_api.OffsetFetchRequestTopic(topic, tuple(numbers)) for topic, numbers in self.partitions.items())
        version = self.asked_version()
        if version < 8:
            return offset_api.OffsetFetchRequest(self.group_id(dialogue), wanted, require_stable=self.require_stable)
        names = [self.group_id(dialogue)] if self.groups is None else self.groups
        member_id = self.sender(dialogue) or None if version >= 9 else None
        epoch = self.sent_generation(dialogue) if self.epoch is None else self.epoch
        if version < 9:
            epoch = -1
        return offset_api.OffsetFetchRequest(require_stable=self.require_stable, groups=tuple(
            offset_api.OffsetFetchRequestGroup(name, member_id, epoch, wanted) for name in names))

    def show(self, dialogue: Dialogue, answer: offset_api.OffsetFetchResponse) -> Any:
        version = self.asked_version()
        if version < 8:
            head = {"error": answer.error_code.name} if version >= 2 else {}
            return {**head, "partitions": offsets_shown(answer.topics)}
        parts = {each.group_id or EMPTY_ID: {"error": each.error_code.name, "partitions": offsets_shown(each.topics)}
                 for each in answer.groups}
        return next(iter(parts.values())) if self.groups is None else parts


class DeleteOffsets(InGroup, frozen=True, kw_only=True):
    VERSION = 0

    partitions: Numbers

    def build(self, dialogue: Dialogue) -> Message:
        return offset_api.OffsetDeleteRequest(self.group_id(dialogue), tuple(
            offset_api.OffsetDeleteRequestTopic(topic, tuple(numbers)) for topic, numbers in self.partitions.items()))

    def show(self, dialogue: Dialogue, answer: offset_api.OffsetDeleteResponse) -> Any:
        return {"error": answer.error_code.name, "partitions": errors_shown(answer.topics)}


# Groups as a whole


class Find(Verb, frozen=True, kw_only=True):
    VERSION = 4
    TO_BROKER = True

    groups: list[str] = msgspec.field(default_factory=lambda: ["main"])
    key_type: int = 0

    def build(self, dialogue: Dialogue) -> Message:
        if self.asked_version() < 4:
            return group_api.FindCoordinatorRequest(self.groups[0], self.key_type)
        return group_api.FindCoordinatorRequest(key_type=self.key_type, coordinator_keys=tuple(self.groups))

    def show(self, dialogue: Dialogue, answer: group_api.FindCoordinatorResponse) -> Any:
        if self.asked_version() < 4:
            return {self.groups[0] or EMPTY_ID: self._found(answer.error_code, answer.node_id)}
        return {each.key or EMPTY_ID: self._found(each.error_code, each.node_id) for each in answer.coordinators}

    def _found(self, error: Error, node_id: int) -> str:
        return f"broker {node_id}" if error is Error.NONE else error.name


class Describe(InGroup, frozen=True, kw_only=True):
    VERSION = 5

    def build(self, dialogue: Dialogue) -> Message:
        return group_api.DescribeGroupsRequest((self.group_id(dialogue),))

    def show(self, dialogue: Dialogue, answer: group_api.DescribeGroupsResponse) -> Any:
        (one,) = answer.groups
        members = [filled({"member_id": dialogue.name_of(each.member_id), "instance": each.group_instance_id,
                           "subscribed": subscription_shown(each.member_metadata),
                           "assignment": assignment_shown(each.member_assignment)}) for each in one.members]
        return filled({"error": one.error_code.name, "state": one.group_state, "protocol_type": one.protocol_type,
                       "protocol": one.protocol_data, "members": sorted(members, key=lambda each: each["member_id"])})


class List(Verb, frozen=True, kw_only=True):
    VERSION = 5

    states: list[str] = []
    types: list[str] = []

    def build(self, dialogue: Dialogue) -> Message:
        return group_api.ListGroupsRequest(tuple(self.states), tuple(self.types))

    def show(self, dialogue: Dialogue, answer: group_api.ListGroupsResponse) -> Any:
        ours = [each for each in answer.groups if each.group_id in dialogue.groups]
        return {"error": answer.error_code.name,
                "groups": {each.group_id or EMPTY_ID: self._listed(each) for each in ours}}

    def _listed(self, one: group_api.ListedGroup) -> dict[str, str]:
        shown = {"protocol_type": one.protocol_type}
        if self.asked_version() >= 4:
            shown["state"] = one.group_state
        if self.asked_version() >= 5:
            shown["type"] = one.group_type
        return shown


class DeleteGroup(InGroup, frozen=True, kw_only=True):
    VERSION = 2

    def build(self, dialogue: Dialogue) -> Message:
        return group_api.DeleteGroupsRequest((self.group_id(dialogue),))

    def show(self, dialogue: Dialogue, answer: group_api.DeleteGroupsResponse) -> Any:
        return {"error": answer.results[0].error_code.name}


# Topics


class CreateTopic(Verb, frozen=True, kw_only=True):
    TO_BROKER = True

    topic: str
    count: int = 1

    def build(self, dialogue: Dialogue) -> Message:
        return log_api.CreateTopicsRequest((log_api.CreatableTopic(self.topic, self.count, 1),))

    def show(self, dialogue: Dialogue, answer: log_api.CreateTopicsResponse) -> Any:
        return {"error": answer.topics[0].error_code.name}


class AddPartitions(Verb, frozen=True, kw_only=True):
    TO_BROKER = True

    counts: dict[str, int]

    def build(self, dialogue: Dialogue) -> Message:
        return log_api.CreatePartitionsRequest(tuple(
            log_api.CreatePartitionsTopic(topic, count) for topic, count in self.counts.items()))

    def show(self, dialogue: Dialogue, answer: log_api.CreatePartitionsResponse) -> Any:
        return {"error": answer.results[0].error_code.name}


class DeleteTopic(Verb, frozen=True, kw_only=True):
    TO_BROKER = True

    topic: str

    def build(self, dialogue: Dialogue) -> Message:
        return log_api.DeleteTopicsRequest((self.topic,))

    def show(self, dialogue: Dialogue, answer: log_api.DeleteTopicsResponse) -> Any:
        return {"error": answer.responses[0].error_code.name}


SAID: tuple[type[Verb], ...] = (Join, Sync, Heartbeat, Leave, Commit, Fetch, DeleteOffsets, Find, Describe, List,
                                DeleteGroup, CreateTopic, AddPartitions, DeleteTopic)
