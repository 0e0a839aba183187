"""Settings: Kafka's keys, defaults, units and bounds. `group.max.size` is the field `group_max_size`, and so on.

One frozen struct for each role. `settings()` makes one from Kafka's keys and refuses what Kafka would refuse.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

AtLeast0 = Annotated[int, Meta(ge=0, le=2**31 - 1)]
AtLeast1 = Annotated[int, Meta(ge=1, le=2**31 - 1)]
AnyInt = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


class BrokerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=lambda name: name.replace("_", ".")):
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
    # Taken and checked, and without effect: there are no threads, segments or compression to set here.
    group_coordinator_threads: AtLeast1 = 4
    group_coordinator_append_linger_ms: Annotated[int, Meta(ge=-1, le=2**31 - 1)] = -1
    group_coordinator_rebalance_protocols: tuple[Literal["classic", "consumer", "share", "streams"], ...] = (
        "classic", "consumer")
    offsets_topic_segment_bytes: AtLeast1 = 104857600
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
            raise BadSetting(f"{key}: {str(problem).split(' - at ')[0]}, not {value!r}") from None
    return msgspec.convert(dict(given), role)
