"""Every api that is spoken here: Kafka's key, the versions that are honoured, the request and the response."""

from enum import IntEnum

import msgspec

from cluster.machine import Envelope
from cluster.wire import control, groups, log, offsets
from cluster.wire.fields import Message


class ApiKey(IntEnum):
    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    OFFSET_FOR_LEADER_EPOCH = 23
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    OFFSET_DELETE = 47
    ALTER_PARTITION = 56
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    METADATA_CHANGED = 10001                # ours: from a broker to its own coordinator


class Api(msgspec.Struct, frozen=True):
    key: ApiKey
    name: str
    first: int                              # the oldest version that is understood
    last: int
    request: type[Message]
    response: type[Message] | None          # None: nobody answers


APIS: dict[int, Api] = {
    api.key: api
    for api in (
        Api(ApiKey.PRODUCE, "Produce", 9, 9, log.ProduceRequest, log.ProduceResponse),
        Api(ApiKey.FETCH, "Fetch", 12, 12, log.FetchRequest, log.FetchResponse),
        Api(ApiKey.LIST_OFFSETS, "ListOffsets", 7, 7, log.ListOffsetsRequest, log.ListOffsetsResponse),
        Api(ApiKey.METADATA, "Metadata", 9, 9, log.MetadataRequest, log.MetadataResponse),
        Api(ApiKey.OFFSET_COMMIT, "OffsetCommit", 1, 9, offsets.OffsetCommitRequest, offsets.OffsetCommitResponse),
        Api(ApiKey.OFFSET_FETCH, "OffsetFetch", 1, 9, offsets.OffsetFetchRequest, offsets.OffsetFetchResponse),
        Api(ApiKey.FIND_COORDINATOR, "FindCoordinator", 0, 6,
            groups.FindCoordinatorRequest, groups.FindCoordinatorResponse),
        Api(ApiKey.JOIN_GROUP, "JoinGroup", 0, 9, groups.JoinGroupRequest, groups.JoinGroupResponse),
        Api(ApiKey.HEARTBEAT, "Heartbeat", 0, 4, groups.HeartbeatRequest, groups.HeartbeatResponse),
        Api(ApiKey.LEAVE_GROUP, "LeaveGroup", 0, 5, groups.LeaveGroupRequest, groups.LeaveGroupResponse),
        Api(ApiKey.SYNC_GROUP, "SyncGroup", 0, 5, groups.SyncGroupRequest, groups.SyncGroupResponse),
        Api(ApiKey.DESCRIBE_GROUPS, "DescribeGroups", 0, 6,
            groups.DescribeGroupsRequest, groups.DescribeGroupsResponse),
        Api(ApiKey.LIST_GROUPS, "ListGroups", 0, 5, groups.ListGroupsRequest, groups.ListGroupsResponse),
        Api(ApiKey.CREATE_TOPICS, "CreateTopics", 7, 7, log.CreateTopicsRequest, log.CreateTopicsResponse),
        Api(ApiKey.DELETE_TOPICS, "DeleteTopics", 5, 5, log.DeleteTopicsRequest, log.DeleteTopicsResponse),
        Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderEpoch", 4, 4,
            log.OffsetForLeaderEpochRequest, log.OffsetForLeaderEpochResponse),
        Api(ApiKey.CREATE_PARTITIONS, "CreatePartitions", 3, 3,
            log.CreatePartitionsRequest, log.CreatePartitionsResponse),
        Api(ApiKey.DELETE_GROUPS, "DeleteGroups", 0, 2, groups.DeleteGroupsRequest, groups.DeleteGroupsResponse),
        Api(ApiKey.OFFSET_DELETE, "OffsetDelete", 0, 0, offsets.OffsetDeleteRequest, offsets.OffsetDeleteResponse),
        Api(ApiKey.ELECT_LEADERS, "ElectLeaders", 2, 2, control.ElectLeadersRequest, control.ElectLeadersResponse),
        Api(ApiKey.ALTER_PARTITION, "AlterPartition", 3, 3,
            control.AlterPartitionRequest, control.AlterPartitionResponse),
        Api(ApiKey.BROKER_REGISTRATION, "BrokerRegistration", 4, 4,
            control.BrokerRegistrationRequest, control.BrokerRegistrationResponse),
        Api(ApiKey.BROKER_HEARTBEAT, "BrokerHeartbeat", 1, 1,
            control.BrokerHeartbeatRequest, control.BrokerHeartbeatResponse),
        Api(ApiKey.METADATA_CHANGED, "MetadataChanged", 0, 0, log.MetadataChanged, None),
    )
}

NOT_EMULATED = {                            # whoever asks for these deserves a clear answer
    22: "InitProducerId", 24: "AddPartitionsToTxn", 25: "AddOffsetsToTxn", 26: "EndTxn", 27: "WriteTxnMarkers",
    28: "TxnOffsetCommit",
}

API_OF_REQUEST: dict[type, Api] = {api.request: api for api in APIS.values()}
API_OF_RESPONSE: dict[type, Api] = {api.response: api for api in APIS.values() if api.response}


def request(body: Message, *, source: str, destination: str, correlation_id: int, client_id: str = "",
            incarnation: int = 0, version: int | None = None) -> Envelope:
    """A request on its way, in the newest version unless another is named."""
    api = API_OF_REQUEST[type(body)]
    return Envelope(source, incarnation, destination, api.key, api.last if version is None else version,
                    correlation_id, client_id, body)


def response(asked: Envelope, body: Message) -> Envelope:
    """The answer to a request: the way back, in the version it was asked in."""
    return Envelope(asked.destination, asked.incarnation, asked.source, asked.api_key, asked.api_version,
                    asked.correlation_id, asked.client_id, body)
