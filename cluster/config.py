"""Settings: Kafka's keys, defaults, units and bounds. `group.max.size` is the field `group_max_size`, and so on.

One frozen struct for each role. `settings()` makes one from Kafka's keys and refuses what Kafka would refuse.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta

AtLeast0 = Annotated[int, Meta(ge=0, le=2**31 - 1)]
AtLeast1 = Annotated[int, Meta(ge=1, le=2**31 - 1)]
AnyInt = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


def _dotted(name: str) -> str:
    return name.replace("_", ".")


class BrokerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=_dotted):
    """A broker and the coordinator beside it."""

    group_initial_rebalance_delay_ms: AnyInt = 3000
    group_min_session_timeout_ms: AnyInt = 6000
    group_max_session_timeout_ms: AnyInt = 1800000
    group_max_size: AtLeast1 = 2147483647
    offset_metadata_max_bytes: AnyInt = 4096
    offsets_commit_timeout_ms: AtLeast1 = 5000
    offsets_load_buffer_size: AtLeast1 = 5242880
    offsets_retention_check_interval_ms: AtLeast1 = 600000
    offsets_retention_minutes: AtLeast1 = 10080
    offsets_topic_num_partitions: AtLeast1 = 50
    offsets_topic_replication_factor: Annotated[int, Meta(ge=1, le=32767)] = 3
    num_partitions: AtLeast1 = 1
    default_replication_factor: Annotated[int, Meta(ge=1, le=32767)] = 1
    message_max_bytes: AtLeast0 = 1048588
    min_insync_replicas: AtLeast1 = 1
    replica_lag_time_max_ms: AtLeast1 = 30000
    replica_fetch_wait_max_ms: AtLeast0 = 500
    replica_fetch_backoff_ms: AtLeast0 = 1000
    replica_fetch_max_bytes: AtLeast0 = 1048576
    replica_fetch_response_max_bytes: AtLeast0 = 10485760
    broker_heartbeat_interval_ms: AtLeast1 = 2000
    controlled_shutdown_enable: bool = True
    log_cleaner_backoff_ms: AtLeast0 = 15000
    log_cleaner_delete_retention_ms: AtLeast0 = 86400000
    offsets_topic_segment_bytes: AtLeast1 = 104857600
    # Taken and checked, and without effect: there are no threads and no compression here.
    group_coordinator_threads: AtLeast1 = 4
    group_coordinator_append_linger_ms: Annotated[int, Meta(ge=-1, le=2**31 - 1)] = -1
    group_coordinator_rebalance_protocols: tuple[Literal["classic", "consumer", "share", "streams"], ...] = (
        "classic", "consumer")
    offsets_topic_compression_codec: AnyInt = 0
    # The consumer protocol (KIP-848): read and checked, so that a recorded broker's settings can be given as they are.
    group_consumer_session_timeout_ms: AtLeast1 = 45000
    group_consumer_min_session_timeout_ms: AtLeast1 = 45000
    group_consumer_max_session_timeout_ms: AtLeast1 = 60000
    group_consumer_heartbeat_interval_ms: AtLeast1 = 5000
    group_consumer_min_heartbeat_interval_ms: AtLeast1 = 5000
    group_consumer_max_heartbeat_interval_ms: AtLeast1 = 15000
    group_consumer_max_size: AtLeast1 = 2147483647
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_assignment_interval_ms: AtLeast0 = 1000
    group_consumer_assignor_offload_enable: bool = True
    group_consumer_migration_policy: Literal["bidirectional", "upgrade", "downgrade", "disabled"] = "bidirectional"


class ControllerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=_dotted):
    broker_session_timeout_ms: AtLeast1 = 9000
    unclean_leader_election_enable: bool = False
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_seconds: AtLeast1 = 300
    num_partitions: AtLeast1 = 1
    default_replication_factor: Annotated[int, Meta(ge=1, le=32767)] = 1


class ConsumerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=_dotted):
    """A consumer of the classic protocol. The last ones are ours: what the application around it does."""

    session_timeout_ms: AtLeast1 = 45000
    heartbeat_interval_ms: AtLeast1 = 3000
    max_poll_interval_ms: AtLeast1 = 300000
    max_poll_records: AtLeast1 = 500
    enable_auto_commit: bool = True
    auto_commit_interval_ms: AtLeast0 = 5000
    auto_offset_reset: Literal["earliest", "latest", "none"] = "latest"
    partition_assignment_strategy: tuple[str, ...] = ("range", "cooperative-sticky")
    group_instance_id: str | None = None
    retry_backoff_ms: AtLeast0 = 100
    retry_backoff_max_ms: AtLeast0 = 1000
    reconnect_backoff_ms: AtLeast0 = 50
    reconnect_backoff_max_ms: AtLeast0 = 1000
    metadata_max_age_ms: AtLeast0 = 300000
    request_timeout_ms: AtLeast1 = 30000
    default_api_timeout_ms: AtLeast0 = 60000
    fetch_min_bytes: AtLeast0 = 1
    fetch_max_wait_ms: AtLeast0 = 500
    fetch_max_bytes: AtLeast0 = 52428800
    max_partition_fetch_bytes: AtLeast0 = 1048576
    exclude_internal_topics: bool = True
    heartbeat_thread: bool = True              # false: before 0.10.1, heartbeats left from the polling thread
    poll_timeout_ms: AtLeast0 = 1000           # how long the application lets a poll wait
    processing_ms_per_record: Annotated[float, Meta(ge=0, le=2**31 - 1)] = 0.0
    paused: bool = False                       # it has paused all partitions: a member that does not fetch
    commit: Literal["auto", "sync", "async", "none"] = "auto"     # sync, async: after each batch; auto: as configured


class ProducerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=_dotted):
    """A producer that sends keyed records at a given rate."""

    acks: Literal["0", "1", "all"] = "all"
    enable_idempotence: bool = True
    request_timeout_ms: AtLeast1 = 30000
    delivery_timeout_ms: AtLeast1 = 120000
    retry_backoff_ms: AtLeast0 = 100
    retry_backoff_max_ms: AtLeast0 = 1000
    linger_ms: AtLeast0 = 5
    metadata_max_age_ms: AtLeast0 = 300000
    records_per_second: Annotated[float, Meta(gt=0, le=1_000_000)] = 10.0
    keys: AtLeast1 = 100                       # how many different ones
    record_bytes: AtLeast1 = 64
    records: AtLeast0 = 0                      # how many in all; 0: until it is stopped


NEW_MEMBER_JOIN_TIMEOUT_MS = 300000            # how long a first join may wait; no setting, in Kafka neither

Config = TypeVar("Config", bound=msgspec.Struct)


class BadSetting(ValueError):
    """A key that does not exist, or a value that is out of its bounds."""


def settings(role: type[Config], given: Mapping[str, Any]) -> Config:
    """The settings of a role, from Kafka's keys; what is not given has Kafka's default."""
    known = [field.encode_name for field in msgspec.structs.fields(role)]
    unknown = [key for key in given if key not in known]
    if unknown:
        raise BadSetting(f"no setting {', '.join(map(repr, unknown))}; there are: {', '.join(sorted(known))}")
    for key, value in given.items():
        try:
            msgspec.convert({key: value}, role)
        except msgspec.ValidationError as problem:
            said = str(problem).split(" - at ")[0]
            if said.startswith("Invalid enum value"):
                said = f"one of {', '.join(_allowed(role, key))}"
            raise BadSetting(f"{key}: {said}, not {value!r}") from None
    return msgspec.convert(dict(given), role)


def _allowed(role: type[msgspec.Struct], key: str) -> list[str]:
    kinds = [field.type for field in msgspec.structs.fields(role) if field.encode_name == key]
    while kinds and get_origin(kinds[0]) is not Literal:
        kinds = list(get_args(kinds[0]))       # of a tuple: what it holds
    return [str(each) for each in get_args(kinds[0])] if kinds else []
