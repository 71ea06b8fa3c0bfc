# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Checks the sizes that keep the code readable, and prints how many lines are shipped: part of `make lint`.

    python tools/check_structure.py [ROOT]

| what | limit |
|---|---|
| items of the traits `SenderLaw` and `RouterLaw` | 14 and 11 |
| lines of a function | 100, and at most ten functions over 60 |
| lines of a file | 600 |
| cycles between modules | none |

Shipped code is the Rust, Python and C of `crates/` and `python/`, without tests. Comments above a function do not count
as its lines; those inside it do. A cycle (`circle of` in the output) is a set of modules in one folder that need each
other; a module counts with everything below it. A module and its own submodules may need each other. In Python only
imports that run when the module is imported count.

`EXCEPTIONS` may list code that is over a limit. It is empty. An entry that is no longer needed is an error, so the
list only shrinks.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import tree_sitter_c
import tree_sitter_rust
from tree_sitter import Language, Node, Parser, Query, QueryCursor

TRAIT_ITEMS = {"SenderLaw": 14, "RouterLaw": 11}
FUNCTION_LINES = 100
LONG_FUNCTION_LINES = 60
LONG_FUNCTIONS = 10
FILE_LINES = 600

EXCEPTIONS: frozenset[str] = frozenset()

RUST, C = Language(tree_sitter_rust.language()), Language(tree_sitter_c.language())
LANGUAGES = {".rs": RUST, ".c": C, ".h": C}
NOT_SHIPPED = {"tests", "benches", "examples", "proofs", "data"}

Module = tuple[str, ...]
"""The names of a module, from the root of its crate or package."""
Needs = dict[Module, set[Module]]
"""Which modules each module needs."""

query = cache(Query)


def found(language: Language, pattern: str, node: Node) -> Iterator[dict[str, Node]]:
    """Yields each match of the pattern, as the node of each capture name."""
    for _, captures in QueryCursor(query(language, pattern)).matches(node):
        yield {name: nodes[0] for name, nodes in captures.items()}


def rows(node: Node) -> int:
    return node.end_point.row - node.start_point.row + 1


@dataclass(frozen=True)
class File:
    """A source file, without its test modules."""

    path: Path

    @cached_property
    def root(self) -> Node:
        return Parser(LANGUAGES[self.path.suffix]).parse(self.path.read_bytes()).root_node

    @cached_property
    def tests(self) -> list[Node]:
        """Test modules, inline or as `mod tests;`."""
        if self.path.suffix != ".rs":
            return []
        pattern = "((attribute_item) @attribute . (attribute_item)* . (mod_item name: (_) @name) @module)"
        for_tests = re.compile(rb"#\[cfg\((all\()?test\b")
        return [one["module"] for one in found(RUST, pattern, self.root) if for_tests.match(one["attribute"].text)]

    @cached_property
    def test_files(self) -> set[Path]:
        """Files of test modules that are not inline."""
        folder = self.path.parent if self.path.stem in ("lib", "main", "mod") else self.path.with_suffix("")
        names = [node.child_by_field_name("name").text.decode() for node in self.tests]
        return {folder / f"{name}.rs" for name in names}

    def is_test(self, node: Node) -> bool:
        return any(test.start_byte <= node.start_byte < test.end_byte for test in self.tests)

    @cached_property
    def lines(self) -> int:
        return self.path.read_bytes().count(b"\n") - sum(map(rows, self.tests))

    def functions(self) -> Iterator[tuple[str, int]]:
        """Yields each function's name and number of lines."""
        if self.path.suffix == ".py":
            for node in ast.walk(ast.parse(self.path.read_bytes())):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield node.name, (node.end_lineno or 0) - node.lineno + 1
        elif self.path.suffix == ".rs":
            for one in found(RUST, "(function_item name: (_) @name) @function", self.root):
                if not self.is_test(one["function"]):
                    yield one["name"].text.decode(), rows(one["function"])
        else:
            pattern = "(function_definition declarator: (_) @declarator) @function"
            for one in found(C, pattern, self.root):
                name = re.search(r"(\w+)\(", one["declarator"].text.decode())
                yield name[1] if name else "?", rows(one["function"])

    def trait_items(self) -> Iterator[tuple[str, int]]:
        """Yields each trait's name and number of items."""
        if self.path.suffix == ".rs":
            for one in found(RUST, "(trait_item name: (_) @name body: (_) @body)", self.root):
                items = [node for node in one["body"].named_children if node.type.endswith(("_item", "_type"))]
                yield one["name"].text.decode(), sum(node.type != "attribute_item" for node in items)


def shipped(root: Path) -> list[File]:
    """All files of Rust, Python and C, except tests."""
    paths = (path for folder in ("crates", "python") for path in sorted((root / folder).rglob("*")))
    files = [
        File(path)
        for path in paths
        if path.suffix in {*LANGUAGES, ".py"} and not NOT_SHIPPED.intersection(path.relative_to(root).parts)
    ]
    tests = {path for file in files if file.path.suffix == ".rs" for path in file.test_files}
    return [file for file in files if file.path not in tests]


# ---------------------------------------------------------------------------------------------------- circles


def rust_paths(file: File) -> Iterator[list[str]]:
    """Yields the paths that a file's code names: in `use`, in expressions and types, and in macros."""
    text = bytearray(file.root.text)
    comments = found(RUST, "[(line_comment) (block_comment) (string_literal) (raw_string_literal)] @c", file.root)
    for node in [*file.tests, *(one["c"] for one in comments)]:
        text[node.start_byte : node.end_byte] = b" " * (node.end_byte - node.start_byte)
    for one in found(RUST, "(use_declaration argument: (_) @path)", file.root):
        if not file.is_test(one["path"]):
            yield from used(one["path"], [])
    for path in re.findall(rb"\b(?:crate|self|super)(?:::\w+)+", text):
        yield path.decode().split("::")


def used(node: Node, before: list[str]) -> Iterator[list[str]]:
    """Yields the paths of a `use`, one for each name."""
    path = node.child_by_field_name("path")
    match node.type:
        case "use_list":
            for child in node.named_children:
                yield from used(child, before)
        case "scoped_use_list" if path is not None:
            yield from used(node.child_by_field_name("list"), before + path.text.decode().split("::"))
        case "use_as_clause" if path is not None:
            yield from used(path, before)
        case "use_wildcard":
            yield from used(node.named_children[0], before)
        case _:
            yield before + node.text.decode().split("::")


def rust_needs(modules: dict[Module, File]) -> Needs:
    """For each module of a crate, the modules that it needs."""
    needs: Needs = defaultdict(set)
    for module, file in modules.items():
        for path in rust_paths(file):
            at: Module = module
            for name in path:
                if name == "crate":
                    at = ()
                elif name == "super":
                    at = at[:-1]
                elif (*at, name) in modules:
                    at = (*at, name)
                elif name != "self":
                    break
            needs[module].add(at)
    return needs


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes that run when a module is imported."""
    for child in ast.iter_child_nodes(node):
        types_only = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if not types_only and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from at_import(child)


def python_needs(modules: dict[Module, File]) -> Needs:
    """For each module of the package, the modules that it needs when it is imported."""
    needs: Needs = defaultdict(set)
    for module, file in modules.items():
        for node in at_import(ast.parse(file.path.read_bytes())):
            names: list[Module] = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [(*node.module.split("."), alias.name) for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [tuple(alias.name.split(".")) for alias in node.names]
            needs[module].update(name if name in modules else name[:-1] for name in names)
    return needs


def circles(needs: Needs) -> Iterator[tuple[Module, list[str]]]:
    """Yields each cycle: its folder, and the modules of that folder that need each other."""
    folders: dict[Module, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for module, others in needs.items():
        for other in others:
            same = next((n for n, (a, b) in enumerate(zip(module, other, strict=False)) if a != b), None)
            if same is not None:
                folders[module[:same]][module[same]].add(other[same])
    for folder, edges in folders.items():
        reached = {name: reach(edges, name) for name in list(edges)}
        seen: set[str] = set()
        for name in sorted(reached):
            if name in reached[name] and name not in seen:
                circle = [other for other in sorted(reached[name]) if name in reached.get(other, ())]
                seen.update(circle)
                yield folder, circle


def reach(edges: dict[str, set[str]], start: str) -> set[str]:
    """All modules that a module needs, directly or through others."""
    reached: set[str] = set()
    ahead = [start]
    while ahead:
        new = edges.get(ahead.pop(), set()) - reached
        reached |= new
        ahead += new
    return reached


# ---------------------------------------------------------------------------------------------------- the checks


def modules_of(files: Iterable[File], source: Path) -> dict[Module, File]:
    """The files of a crate or package by their modules' names."""
    modules: dict[Module, File] = {}
    for file in files:
        *folders, name = file.path.relative_to(source).with_suffix("").parts
        modules[(*folders, *([] if name in ("lib", "main", "mod", "__init__") else [name]))] = file
    return modules


def all_circles(root: Path, files: list[File]) -> Iterator[str]:
    """Yields a line for each cycle in the crates and the package."""
    for source in [*sorted(root.glob("crates/*/src")), root / "python"]:
        needs = python_needs if source.name == "python" else rust_needs
        own = [file for file in files if file.path.is_relative_to(source)]
        for folder, circle in circles(needs(modules_of(own, source))):
            yield f"{source.joinpath(*folder).relative_to(root)}: circle of {', '.join(circle)}"


def over_limits(root: Path, files: list[File]) -> Iterator[str]:
    """Yields a line for everything over a limit. The line does not change as a function grows: its exception stays."""
    long_functions = 0
    for file in files:
        name = file.path.relative_to(root)
        if file.lines > FILE_LINES:
            yield f"{name}: over {FILE_LINES} lines"
        for trait, items in file.trait_items():
            if items > TRAIT_ITEMS.get(trait, items):
                yield f"{name}: trait {trait}: over {TRAIT_ITEMS[trait]} items"
        for function, lines in file.functions():
            long_functions += lines > LONG_FUNCTION_LINES
            if lines > FUNCTION_LINES:
                yield f"{name}: {function}: over {FUNCTION_LINES} lines"
    print(f"functions over {LONG_FUNCTION_LINES} lines: {long_functions}")
    if long_functions > LONG_FUNCTIONS:
        yield f"more than {LONG_FUNCTIONS} functions over {LONG_FUNCTION_LINES} lines"
    yield from all_circles(root, files)


def main(root: Path, exceptions: frozenset[str] = EXCEPTIONS) -> int:
    """Prints the number of shipped lines and the errors; returns 1 if there are errors."""
    files = shipped(root)
    lines = Counter[str]()
    for file in files:
        lines[{".rs": "Rust", ".py": "Python"}.get(file.path.suffix, "C")] += file.lines
    each = ", ".join(f"{language} {lines[language]}" for language in sorted(lines))
    print(f"shipped lines without tests: {sum(lines.values())} ({each})")
    found_now = set(over_limits(root, files))
    for line in sorted(found_now - exceptions):
        print(line)
    for line in sorted(exceptions - found_now):
        print(f"{line}: no longer so; remove it from EXCEPTIONS in tools/check_structure.py")
    return int(found_now != exceptions)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()))
