"""From a request to what it means for a group: the checks that come before any group, and which row of the table it is.

The order is Kafka's: fields, is the coordinator started, the group id, the bounds of the session timeout, does this
coordinator lead the group's partition and has it loaded it; only then the group.
"""

from collections.abc import Callable

from cluster.config import BrokerConfig
from cluster.coordinator.answers import (
    commit_answer,
    fetch_refused,
    groups_to_fetch,
    prune_answer,
    refusal,
)
from cluster.coordinator.group import Group
from cluster.coordinator.offsets import offsets_read
from cluster.coordinator.outbox import Outbox
from cluster.coordinator.shard import Phase, Shard
from cluster.coordinator.states import DEAD, On
from cluster.coordinator.writes import DeletePart, FetchPart, Gather, Open
from cluster.java import partition_for
from cluster.machine import Envelope
from cluster.wire.errors import Error
from cluster.wire.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    SyncGroupRequest,
)
from cluster.wire.offsets import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)

MEMBER_ID_REQUIRED_SINCE = 4                   # of JoinGroup (KIP-394)


class Requests:
    def __init__(self, out: Outbox, shards: dict[int, Shard], topics: dict[str, int], config: BrokerConfig) -> None:
        self.out = out
        self.shards = shards
        self.topics = topics
        self.config = config
        self.partitions: int | None = None     # of __consumer_offsets; None until the coordinator has started
        self.served: dict[type, Callable[[Envelope], None]] = {
            JoinGroupRequest: self.join, SyncGroupRequest: self.sync, HeartbeatRequest: self.heartbeat,
            LeaveGroupRequest: self.leave, OffsetCommitRequest: self.commit, OffsetFetchRequest: self.fetch,
            OffsetDeleteRequest: self.prune, DescribeGroupsRequest: self.describe, ListGroupsRequest: self.list_groups,
            DeleteGroupsRequest: self.delete,
        }

    # Before any group

    def shard_of(self, group_id: str) -> Shard | Error:
        """The shard that serves a group, or why none does."""
        if self.partitions is None:
            return Error.COORDINATOR_NOT_AVAILABLE
        shard = self.shards.get(partition_for(group_id, self.partitions))
        if shard is None or shard.phase is Phase.FAILED:
            return Error.NOT_COORDINATOR
        if shard.phase is Phase.LOADING:
            return Error.COORDINATOR_LOAD_IN_PROGRESS
        return shard

    def admit(self, asked: Envelope, group_id: str) -> Shard | None:
        """The shard for a request that names one group, which must have a name; else it is answered here."""
        if not group_id and self.partitions is not None:
            self.refuse(asked, Error.INVALID_GROUP_ID)
            return None
        return self.admit_any(asked, group_id)

    def admit_any(self, asked: Envelope, group_id: str) -> Shard | None:
        shard = self.shard_of(group_id)
        if isinstance(shard, Error):
            self.refuse(asked, shard)
            return None
        return shard

    def refuse(self, asked: Envelope, error: Error) -> None:
        self.out.answer(asked, refusal(asked, error, self.topics))

    # Members

    def join(self, asked: Envelope) -> None:
        request: JoinGroupRequest = asked.body
        low, high = self.config.group_min_session_timeout_ms, self.config.group_max_session_timeout_ms
        if self.partitions is not None and request.group_id and not low <= request.session_timeout_ms <= high:
            self.refuse(asked, Error.INVALID_SESSION_TIMEOUT)
            return
        shard = self.admit(asked, request.group_id)
        if shard is None:
            return
        group = shard.latest.groups.get(request.group_id)
        if group is not None:
            shard.happen(row_of_join(group, request, asked.api_version), group, asked,
                         group.members.get(request.member_id))
        elif request.member_id:
            self.refuse(asked, Error.UNKNOWN_MEMBER_ID)
        else:
            self._found(shard, asked, request)

    def _found(self, shard: Shard, asked: Envelope, request: JoinGroupRequest) -> None:
        """A group comes into being, whatever becomes of the join. A record says so; a join that waits fails with it."""
        group = Group(request.group_id, state_since=self.out.now)
        turn = shard.happen(row_of_join(group, request, asked.api_version), group, asked)
        held = None if turn.member is None else turn.member.join
        shard.write(group, [shard.record_of(Group(request.group_id, state_since=self.out.now), {})],
                    None if held is None else Open(held))

    def sync(self, asked: Envelope) -> None:
        request: SyncGroupRequest = asked.body
        if asked.api_version >= 5 and (request.protocol_type is None or request.protocol_name is None):
            self.refuse(asked, Error.INCONSISTENT_GROUP_PROTOCOL)
            return
        shard = self.admit(asked, request.group_id)
        if shard is None:
            return
        group = shard.latest.groups.get(request.group_id)
        if group is None:
            self.refuse(asked, Error.UNKNOWN_MEMBER_ID)
            return
        on = On.SYNC_LEADER if group.leader == request.member_id else On.SYNC
        shard.happen(on, group, asked, group.members.get(request.member_id))

    def heartbeat(self, asked: Envelope) -> None:
        """While the group is loaded, every heartbeat is welcome: its sender will not be expelled for our slowness."""
        request: HeartbeatRequest = asked.body
        shard = self.shard_of(request.group_id) if request.group_id else Error.INVALID_GROUP_ID
        if isinstance(shard, Error):
            blind = shard is Error.COORDINATOR_LOAD_IN_PROGRESS
            self.refuse(asked, Error.NONE if blind else shard)
            return
        group = shard.latest.groups.get(request.group_id)
        if group is None:
            shard.reply(asked, refusal(asked, Error.UNKNOWN_MEMBER_ID, self.topics))
            return
        shard.happen(On.HEARTBEAT, group, asked, group.members.get(request.member_id))

    def leave(self, asked: Envelope) -> None:
        shard = self.admit(asked, asked.body.group_id)
        if shard is None:
            return
        group = shard.latest.groups.get(asked.body.group_id)
        if group is None:
            shard.reply(asked, refusal(asked, Error.UNKNOWN_MEMBER_ID, self.topics))
            return
        shard.happen(On.LEAVE, group, asked)

    # Offsets

    def commit(self, asked: Envelope) -> None:
        """Partitions that do not exist are refused before the group is asked; with none left it is not asked at all."""
        request: OffsetCommitRequest = asked.body
        if not any(one.partition_index in range(self.topics.get(topic.name, 0))
                   for topic in request.topics for one in topic.partitions):
            self.out.answer(asked, commit_answer(asked, self.topics, lambda *_: Error.NONE))
            return
        shard = self.admit_any(asked, request.group_id)
        if shard is None:
            return
        group = shard.latest.groups.get(request.group_id)
        if group is None and request.generation_id >= 0:
            error = Error.GROUP_ID_NOT_FOUND if asked.api_version >= 9 else Error.ILLEGAL_GENERATION
            shard.reply(asked, refusal(asked, error, self.topics))
            return
        group = group or Group(request.group_id, state_since=self.out.now)
        shard.happen(On.COMMIT, group, asked, group.members.get(request.member_id))

    def fetch(self, asked: Envelope) -> None:
        """Read what is committed; with `require_stable` what is written, once that is committed."""
        wanted = groups_to_fetch(asked)
        whole = Gather(asked, [None] * len(wanted), len(wanted))
        stable = bool(asked.body.require_stable)
        for index, each in enumerate(wanted):
            shard = self.shard_of(each.group_id)
            if isinstance(shard, Error):
                whole.put(self.out, index, fetch_refused(each, shard))
                continue
            part = self._read(shard, each, stable)
            if stable and shard.uncommitted():
                shard.wait(FetchPart(whole, index, each, part))
            else:
                whole.put(self.out, index, part)
        if not wanted:
            self.out.answer(asked, whole.body())

    def _read(self, shard: Shard, wanted: OffsetFetchRequestGroup, stable: bool) -> OffsetFetchResponseGroup:
        view = shard.latest if stable else shard.committed
        group = view.groups.get(wanted.group_id)
        if group is None:
            return offsets_read(wanted, {})
        part: OffsetFetchResponseGroup = shard.happen(On.FETCH, group, about=(wanted, view)).about
        return part

    def prune(self, asked: Envelope) -> None:
        request: OffsetDeleteRequest = asked.body
        if not any(partition in range(self.topics.get(topic.name, 0))
                   for topic in request.topics for partition in topic.partitions):
            self.out.answer(asked, prune_answer(asked, self.topics, lambda _: Error.NONE))
            return
        shard = self.admit(asked, request.group_id)
        if shard is None:
            return
        group = shard.latest.groups.get(request.group_id)
        if group is None:
            shard.reply(asked, refusal(asked, Error.GROUP_ID_NOT_FOUND, self.topics))
            return
        shard.happen(On.PRUNE, group, asked)

    # Groups as a whole

    def describe(self, asked: Envelope) -> None:
        self.out.answer(asked, DescribeGroupsResponse(tuple(
            self._described(group_id, asked.api_version) for group_id in asked.body.groups)))

    def _described(self, group_id: str, version: int) -> DescribedGroup:
        """A group is there once its first record is committed. That it is not is an error since v6; before, a state."""
        shard = self.shard_of(group_id)
        if isinstance(shard, Error):
            return DescribedGroup(group_id, shard)
        group = shard.committed.groups.get(group_id)
        if group is None:
            if version >= 6:
                return DescribedGroup(group_id, Error.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.", DEAD)
            return DescribedGroup(group_id, group_state=DEAD)
        protocol_data, members = shard.happen(On.DESCRIBE, group).about
        return DescribedGroup(group_id, group_state=group.state, protocol_type=group.protocol_type or "",
                              protocol_data=protocol_data, members=members)

    def list_groups(self, asked: Envelope) -> None:
        if self.partitions is None or any(shard.phase is Phase.LOADING for shard in self.shards.values()):
            self.refuse(asked, Error.COORDINATOR_NOT_AVAILABLE if self.partitions is None
                        else Error.COORDINATOR_LOAD_IN_PROGRESS)
            return
        states = {text.strip().lower() for text in asked.body.states_filter}
        types = {text.strip().lower() for text in asked.body.types_filter}
        self.out.answer(asked, ListGroupsResponse(groups=tuple(
            ListedGroup(group.group_id, group.protocol_type or "", group.state, "classic")
            for shard in self.shards.values() for group in shard.committed.groups.values()
            if (not states or group.state.lower() in states) and (not types or "classic" in types))))

    def delete(self, asked: Envelope) -> None:
        names = list(dict.fromkeys(asked.body.groups_names))
        whole = Gather(asked, [None] * len(names), len(names))
        for index, group_id in enumerate(names):
            shard = self.shard_of(group_id)
            if isinstance(shard, Error):
                whole.put(self.out, index, DeletableGroupResult(group_id, shard))
                continue
            group = shard.latest.groups.get(group_id)
            said = Error.GROUP_ID_NOT_FOUND if group is None else shard.happen(On.DELETE, group).said
            part = DeletableGroupResult(group_id, said or Error.NONE)
            if shard.uncommitted():
                shard.wait(DeletePart(whole, index, part))
            else:
                whole.put(self.out, index, part)
        if not names:
            self.out.answer(asked, whole.body())


def row_of_join(group: Group, request: JoinGroupRequest, version: int) -> On:
    """Which kind of join it is: by who asks, never by the state of the group."""
    instance_id = request.group_instance_id
    if request.member_id:
        if request.member_id in group.pending:
            return On.JOIN_NEW
        member = group.members.get(request.member_id)
        if member is None:
            return On.JOIN_SAME
        if member.protocols != request.protocols:
            return On.JOIN_CHANGED
        return On.JOIN_LEADER if group.leader == member.member_id else On.JOIN_SAME
    if instance_id is None:
        return On.JOIN_UNNAMED if version >= MEMBER_ID_REQUIRED_SINCE else On.JOIN_NEW
    if instance_id not in group.static:
        return On.JOIN_NEW
    member = group.members[group.static[instance_id]]
    voted = group.voted_protocol(member, request.protocols)
    return On.JOIN_BACK if voted == group.protocol_name else On.JOIN_BACK_REVOTE
