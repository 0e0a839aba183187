"""YAML files that people write: read with the line of everything, so that an error can say where it is."""

import re
from collections.abc import Collection, Hashable
from pathlib import Path
from typing import Any

import yaml


class BadFile(ValueError):
    """A file that cannot be used. Says which file, which line, what is wrong, and what would be right."""

    def __init__(self, path: Path, line: int | None, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}" if line is not None else f"{path}: {problem}")


class _Loader(yaml.CSafeLoader):
    """YAML 1.2's truth: `true` and `false`. A `no` or an `on` is a word, and may be a key."""

    yaml_implicit_resolvers = {
        first: [(tag, form) for tag, form in resolvers if tag != "tag:yaml.org,2002:bool"]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"true|false"), ["t", "f"])


class _Dumper(yaml.CSafeDumper):
    yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers

    def ignore_aliases(self, data: Any) -> bool:
        """What stands in two places is written twice: people read it."""
        return True


class Lines(dict[Any, Any]):
    """A mapping that knows on which line it and each of its keys stand."""

    line: int
    line_of: dict[Any, int]


class Document:
    def __init__(self, path: str | Path, text: str | None = None) -> None:
        """A file; or the text of one that is not written yet."""
        self.path = Path(path)
        self.text = self._read() if text is None else text
        self.content = self._parse()

    def bad(self, where: Any, problem: str, key: Hashable | None = None) -> BadFile:
        """The error for something in this file: `where` is the mapping it stands in."""
        line = getattr(where, "line", None)
        if key is not None and isinstance(where, Lines):
            line = where.line_of.get(key, line)
        return BadFile(self.path, line, problem)

    def mapping(self, value: Any, where: Any, what: str, allowed: Collection[str] | None = None,
                under: Hashable | None = None) -> Lines:
        """A mapping with no keys but the allowed ones. It stands in `where`, under a key."""
        if not isinstance(value, Lines):
            raise self.bad(where, f"{what} is a mapping, not {short(value)}", under)
        for key in value:
            if allowed is not None and key not in allowed:
                raise self.bad(value, f"{what} has no key {key!r}; allowed: {', '.join(sorted(allowed)) or 'none'}",
                               key)
        return value

    def sequence(self, value: Any, where: Any, what: str, under: Hashable | None = None) -> list[Any]:
        if not isinstance(value, list):
            raise self.bad(where, f"{what} is a list, not {short(value)}", under)
        return value

    def _read(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
            raise BadFile(self.path, None, f"cannot be read: {reason}") from None

    def _parse(self) -> Any:
        loader = _Loader(self.text)
        try:
            node = loader.get_single_node()
            return None if node is None else self._plain(loader, node)
        except yaml.MarkedYAMLError as problem:
            line = None if problem.problem_mark is None else problem.problem_mark.line + 1
            raise BadFile(self.path, line, f"not YAML: {problem.problem}") from None
        except (yaml.YAMLError, RecursionError) as problem:
            raise BadFile(self.path, None, f"not YAML: {problem}") from None
        finally:
            loader.dispose()

    def _plain(self, loader: _Loader, node: yaml.Node) -> Any:
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(loader, each) for each in node.value]
        if not isinstance(node, yaml.MappingNode):
            return self._scalar(loader, node)
        found = Lines()
        found.line = node.start_mark.line + 1
        found.line_of = {}
        for key_node, value_node in node.value:
            key = self._plain(loader, key_node)
            line = key_node.start_mark.line + 1
            if not isinstance(key, Hashable):
                raise BadFile(self.path, line, "a key cannot be a list or a mapping")
            if key in found:
                raise BadFile(self.path, line, f"{key!r} stands here twice")
            found[key] = self._plain(loader, value_node)
            found.line_of[key] = line
        return found

    def _scalar(self, loader: _Loader, node: yaml.Node) -> Any:
        """It may look like a number or a date, and be none: one of five thousand digits, or of February 30."""
        try:
            return loader.construct_object(node)
        except ValueError as problem:
            raise BadFile(self.path, node.start_mark.line + 1, f"not a value: {problem}") from None


def plain(value: Any) -> Any:
    """The same without its lines."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def written(value: Any) -> str:
    """A document as the text of a file: its keys one below the other, what they hold on one line each."""
    return str(yaml.dump(value, Dumper=_Dumper, default_flow_style=None, width=120, sort_keys=False,
                         allow_unicode=True))


def flow(value: Any) -> str:
    """A value on one line, as it might stand in a file."""
    text = str(yaml.dump(value, Dumper=_Dumper, default_flow_style=True, width=10**6, sort_keys=False,
                         allow_unicode=True))
    return text.removesuffix("\n").removesuffix("\n...")


def short(value: Any) -> str:
    """A value as it may stand in an error."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
