"""Settings have Kafka's names, defaults and bounds."""

import pytest

from cluster.config import BadSetting, BrokerConfig, ConsumerConfig, ProducerConfig, settings


def test_what_is_not_given_has_kafkas_default() -> None:
    config = settings(BrokerConfig, {"group.max.size": 3})
    assert (config.group_max_size, config.group_initial_rebalance_delay_ms, config.offsets_topic_num_partitions) == (
        3,
        3000,
        50,
    )


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("group.max.size", 0, "group.max.size: Expected `int` >= 1, not 0"),
        ("offsets.retention.minutes", "a week", "offsets.retention.minutes: Expected `int`, got `str`, not 'a week'"),
        ("offsets.topic.num.partitions", 1.5, "offsets.topic.num.partitions: Expected `int`, got `float`, not 1.5"),
        (
            "group.consumer.migration.policy",
            "never",
            "group.consumer.migration.policy: one of bidirectional, upgrade, downgrade, disabled, not 'never'",
        ),
    ],
)
def test_a_value_out_of_its_bounds_is_refused_with_its_key(key: str, value: object, said: str) -> None:
    with pytest.raises(BadSetting) as problem:
        settings(BrokerConfig, {key: value})
    assert str(problem.value) == said


def test_an_unknown_key_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadSetting, match=r"no setting 'group.max.sise'; there are: .*group.max.size"):
        settings(BrokerConfig, {"group.max.sise": 3})


def test_a_choice_says_what_there_is_to_choose() -> None:
    with pytest.raises(BadSetting, match=r"^acks: one of 0, 1, all, not 'some'$"):
        settings(ProducerConfig, {"acks": "some"})
    with pytest.raises(BadSetting, match=r"protocols: one of classic, consumer, share, streams, not \['old'\]$"):
        settings(BrokerConfig, {"group.coordinator.rebalance.protocols": ["old"]})


def test_nothing_takes_for_ever() -> None:
    with pytest.raises(BadSetting, match=r"^processing.ms.per.record: Expected `float` <= 2147483647.0, not inf$"):
        settings(ConsumerConfig, {"processing.ms.per.record": float("inf")})
