# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`tools/check_structure.py` finds what is over a limit, and nothing else."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
check = runpy.run_path(str(ROOT / "tools/check_structure.py"))["main"]


def function(lines: int, name: str = "much", head: str = "fn {}() {{", end: str = "}") -> str:
    """A function of that many lines."""
    return "\n".join([head.format(name), *["    x();"] * (lines - 2), end, ""])


def trait(name: str, items: int) -> str:
    """A trait with a type, a constant, and events, each with a comment and an attribute."""
    events = "".join(f"    /// Event.\n    #[inline]\n    fn on_{n}(&self) {{}}\n" for n in range(items - 2))
    return f"pub trait {name} {{\n    type Params;\n    const TRAITS: u8 = 0;\n{events}}}\n"


TESTS = "#[cfg(test)]\nmod tests {\n    use crate::b::X;\n" + function(700) + "}\n"
FINE = {
    "crates/x/src/lib.rs": "mod a;\nmod b;\n" + trait("SenderLaw", 14) + trait("RouterLaw", 11) + TESTS,
    # A comment, a string and a test are no code; a module and its submodules may need each other.
    "crates/x/src/a.rs": "//! crate::b::X\nmod part;\nuse part::Y;\nuse crate::X;\n#[cfg(test)]\nmod proof;\n" + TESTS,
    "crates/x/src/a/part.rs": "use super::Y;\n" + function(100),
    "crates/x/src/a/proof.rs": "use crate::b::X;\n" + function(700),
    "crates/x/src/b.rs": "use crate::{a::{Y, part}, X as Z};\n",
    "crates/x/tests/all.rs": function(700),
    "crates/x/bpf/x.h": function(100, head="static int {}(void) {{"),
    # A function's imports run when it is called.
    "python/p/__init__.py": "",
    "python/p/a.py": "from p import b\n",
    "python/p/b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import a\n"
    "def f():\n    from p import a\n",
}
MANY = "".join(function(61, f"f{n}") for n in range(8))


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"crates/x/src/lib.rs": trait("SenderLaw", 15)}, "crates/x/src/lib.rs: trait SenderLaw: over 14 items"),
        ({"crates/x/src/lib.rs": trait("RouterLaw", 12)}, "crates/x/src/lib.rs: trait RouterLaw: over 11 items"),
        ({"crates/x/src/b.rs": function(101)}, "crates/x/src/b.rs: much: over 100 lines"),
        ({"crates/x/bpf/x.h": function(101, head="static int {}(void) {{")}, "crates/x/bpf/x.h: much: over 100 lines"),
        ({"python/p/b.py": function(101, head="def {}():", end="    x()")}, "python/p/b.py: much: over 100 lines"),
        ({"crates/x/src/b.rs": MANY, "crates/x/src/a/part.rs": MANY}, "more than 10 functions over 60 lines"),
        ({"crates/x/src/b.rs": "\n" * 601}, "crates/x/src/b.rs: over 600 lines"),
        ({"crates/x/src/a/part.rs": "use crate::b::{X, Y};\n"}, "crates/x/src: circle of a, b"),
        ({"crates/x/src/a/part.rs": "use super::super::b::{X, Y};\n"}, "crates/x/src: circle of a, b"),
        ({"crates/x/src/a/part.rs": "macro! { X crate::b::Law }\n"}, "crates/x/src: circle of a, b"),
        ({"python/p/b.py": "import p.a\n"}, "python/p: circle of a, b"),
        ({"python/p/b.py": "from p.a import f\n"}, "python/p: circle of a, b"),
    ],
)
def test_what_is_over_a_limit_is_found(
    changed: dict[str, str], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, FINE)
    assert check(tmp_path, frozenset()) == 0, capsys.readouterr().out
    write(tmp_path, changed)
    capsys.readouterr()
    assert check(tmp_path, frozenset()) == 1
    assert capsys.readouterr().out.splitlines()[2:] == [line]
    assert check(tmp_path, frozenset([line])) == 0


def test_an_exception_that_is_not_needed_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, FINE)
    assert check(tmp_path, frozenset(["python/p/a.py: over 600 lines"])) == 1
    assert "python/p/a.py: over 600 lines: no longer so" in capsys.readouterr().out


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
