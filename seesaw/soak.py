"""seesaw soak: random clusters, workloads and faults, with every safety rule checked; what breaks is made small."""

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path

import click
import msgspec

from scenarios.reading import written
from scenarios.runner import rarely_collect, write_text
from scenarios.soak import Failure, attempt, draw, shrink

EVERY_S = 5.0                                  # how often progress is said where nobody looks at a terminal


class Soaked(msgspec.Struct):
    seeds: int = 0
    seconds: float = 0.0
    failures: list[Failure] = []
    files: list[str] = []
    interrupted: bool = False


@click.command()
@click.option("--seeds", default=100, show_default=True, type=click.IntRange(1), help="How many schedules.")
@click.option("--from", "first", default=0, show_default=True, type=click.IntRange(0), help="The first seed.")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="Stop after that time, whatever is left.")
@click.option("--jobs", default=os.cpu_count() or 1, show_default="one for each core", type=click.IntRange(1),
              help="How many at once.")
@click.option("--out", default=Path("runs/soak"), show_default=True, type=click.Path(path_type=Path, file_okay=False),
              help="Where scenarios that fail are written.")
@click.option("--tries", default=150, show_default=True, type=click.IntRange(0),
              help="How often a failing one is tried again to make it smaller.")
@click.option("--json", "as_json", is_flag=True, help="Only the result, as JSON.")
def soak(seeds: int, first: int, minutes: float | None, jobs: int, out: Path, tries: int, as_json: bool) -> None:
    """Draw random clusters, groups, workloads and faults, one for each seed; play each for a minute of virtual time in
    the simulator; check every safety rule.

    A seed that breaks one is made smaller while it still does, and written as a scenario that replays it. Exit codes: 0
    if nothing broke, 1 if something did, 2 if it could not run or was interrupted.

    \b
    Example:
      seesaw soak --seeds 1000
      seesaw soak --seeds 100000 --minutes 30 --from 5000
    """
    result = Soaked()
    began = time.monotonic()
    try:
        for failure in _progress(_attempts(range(first, first + seeds), jobs), seeds, minutes, result, as_json):
            result.failures.append(failure)
            result.files.append(str(_write(failure, out, tries, as_json)))
    except KeyboardInterrupt:
        result.interrupted = True
    except OSError as problem:
        click.echo(f"seesaw soak: {problem}", err=True)
        sys.exit(2)
    result.seconds = round(time.monotonic() - began, 3)
    click.echo(msgspec.json.encode(result).decode() if as_json else _told(result))
    sys.exit(2 if result.interrupted else 1 if result.failures else 0)


def _attempts(seeds: range, jobs: int) -> Iterator[Failure | None]:
    """In the order of seeds, whoever is done first."""
    if jobs == 1:
        yield from map(_attempt, seeds)
        return
    with ProcessPoolExecutor(jobs, initializer=rarely_collect) as pool:
        try:
            waiting, left = [], iter(seeds)
            waiting = [pool.submit(_attempt, seed) for seed in islice(left, 4 * jobs)]
            while waiting:
                yield waiting.pop(0).result()
                waiting += [pool.submit(_attempt, seed) for seed in islice(left, 1)]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _attempt(seed: int) -> Failure | None:
    return attempt(draw(seed), seed)


def _progress(attempts: Iterator[Failure | None], seeds: int, minutes: float | None, result: Soaked,
              silent: bool) -> Iterator[Failure]:
    """The failures, one by one; and on the way, how far it has got."""
    began = said = time.monotonic()
    for failure in attempts:
        result.seeds += 1
        now = time.monotonic()
        if not silent and (now - said > EVERY_S or failure is not None):
            said = now
            click.echo(f"{result.seeds} of {seeds} seeds, {result.seeds / (now - began):.1f} a second, "
                       f"{len(result.failures) + (failure is not None)} failed", err=True)
        if failure is not None:
            yield failure
        if minutes is not None and now - began > minutes * 60:
            return


def _write(failure: Failure, out: Path, tries: int, silent: bool) -> Path:
    if not silent:
        click.echo(f"seed {failure.seed} breaks {failure.rule}: {failure.evidence}; making it smaller", err=True)
    small = shrink(draw(failure.seed), failure, tries)
    path = out / f"soak-{failure.seed}.yaml"
    out.mkdir(parents=True, exist_ok=True)
    text = f"# Breaks {failure.rule}: {failure.evidence}\n# seesaw run {path} --on sim --seed {failure.seed}\n"
    write_text(path, text + written(small))
    if not silent:
        click.echo(text + written(small))
    return path


def _told(result: Soaked) -> str:
    rate = result.seeds / max(result.seconds, 0.001)
    lines = [f"{result.seeds} seeds in {result.seconds:.1f} s: {rate:.1f} a second"]
    lines += [f"  seed {failure.seed} breaks {failure.rule}: seesaw run {file} --on sim --seed {failure.seed}"
              for failure, file in zip(result.failures, result.files, strict=True)]
    if result.interrupted:
        lines.append("interrupted")
    return "\n".join([*lines, f"{len(result.failures)} failed" if result.failures else "no rule was broken"])
