"""Which topics this consumer is interested in: those it subscribed to, and, if it leads, those of the whole group."""

import re

from cluster.consumer.metadata import Metadata
from cluster.java import in_string_order


class Interest:
    def __init__(self, exclude_internal: bool) -> None:
        self.exclude_internal = exclude_internal
        self.topics: tuple[str, ...] = ()      # the subscription: what was named, or what the pattern matches; sorted
        self.group: tuple[str, ...] = ()       # of all members, if this one leads
        self.pattern: re.Pattern[str] | None = None
        self.is_subscribed = False
        self.sizes: dict[str, int] = {}        # of all these topics, as the application last saw the cluster
        self._seen = 0                         # the version of the metadata that this comes from

    def subscribe(self, topics: tuple[str, ...], pattern: str | None, metadata: Metadata) -> None:
        self.is_subscribed = True
        self.pattern = None if pattern is None else re.compile(pattern)
        before = self.topics
        self.topics = self._matches(metadata) if self.pattern is not None else _sorted(topics)
        if self.pattern is not None or self.topics != before:
            metadata.request_topics()

    def add(self, topics: tuple[str, ...]) -> None:
        self.topics = _sorted((*self.topics, *topics))

    def unsubscribe(self) -> None:
        self.is_subscribed = False
        self.topics = self.group = ()
        self.pattern = None

    def watch(self, topics: tuple[str, ...]) -> bool:
        """A leader watches the topics of all members. Are there some among them that it did not know of?"""
        self.group = _sorted(topics)
        return not set(self.group) <= set(self.topics)

    def wanted(self) -> tuple[str, ...] | None:
        """What to ask brokers for: a pattern is matched here, not there, so it needs all names."""
        return None if self.pattern is not None else self.all_topics()

    def all_topics(self) -> tuple[str, ...]:
        return _sorted((*self.topics, *self.group)) if self.group else self.topics

    def notice(self, metadata: Metadata) -> None:
        """The application sees the cluster as it is now: a pattern may match other topics, a topic may have grown."""
        if self._seen == metadata.version:
            return
        self._seen = metadata.version
        if self.pattern is not None:
            self.topics = self._matches(metadata)
        self.sizes = metadata.sizes(self.all_topics())

    def allows(self, topic: str) -> bool:
        """May we be given this topic?"""
        return topic in self.topics if self.pattern is None else self.pattern.fullmatch(topic) is not None

    def _matches(self, metadata: Metadata) -> tuple[str, ...]:
        assert self.pattern is not None
        matches = self.pattern.fullmatch
        return _sorted(tuple([topic for topic in metadata.topics
                              if matches(topic) and not (self.exclude_internal and topic in metadata.internal)]))


def _sorted(topics: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(in_string_order(dict.fromkeys(topics)))
