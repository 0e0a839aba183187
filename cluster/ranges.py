"""Sets of offsets as ranges: what was processed, acknowledged, skipped. Mostly one long range that grows at its end."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator


class Ranges:
    """Disjoint ranges [start, end), in order."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(zip(self._starts, self._ends, strict=True))

    def __len__(self) -> int:
        """How many offsets there are in it."""
        return sum(self._ends) - sum(self._starts)

    def add(self, start: int, end: int) -> int:
        """Take a range in; how many of its offsets were there already."""
        if start >= end:
            return 0
        if self._ends and start == self._ends[-1]:         # the common case: it goes on where it stopped
            self._ends[-1] = end
            return 0
        first = bisect_left(self._ends, start)             # ranges that touch or overlap: first up to, not with, last
        last = bisect_right(self._starts, end)
        known = sum(min(end, self._ends[index]) - max(start, self._starts[index]) for index in range(first, last))
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]
        return known

    def missing(self, start: int, end: int) -> list[tuple[int, int]]:
        """What of a range is not in it."""
        gaps = []
        for index in range(bisect_right(self._ends, start), len(self._starts)):
            if self._starts[index] >= end:
                break
            if start < self._starts[index]:
                gaps.append((start, self._starts[index]))
            start = max(start, self._ends[index])
        if start < end:
            gaps.append((start, end))
        return gaps
