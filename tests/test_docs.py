# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Examples in the documentation work: scenarios, commands and Python code run, and references match the code."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

import flowstamp as fs
from flowstamp.figures import available
from flowstamp.figures.claims import FUNCTIONS
from flowstamp.figures.command import cli_figure

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
MADE = {"_build", "gallery"}  # by a build of the site
LAWS_TO_ADD = "adding-a-law"  # files that a page shows: tests/test_adding_a_law.py
PAGES = sorted(
    [
        ROOT / "README.md",
        *(path for path in DOCS.rglob("*.md") if {*MADE, LAWS_TO_ADD}.isdisjoint(path.relative_to(DOCS).parts)),
    ]
)
FOLLOWED = DOCS / "adding-a-law.md"  # its blocks are a change to the code: tests/test_adding_a_law.py
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
MODELS = sorted((DOCS / "models").glob("*.md"))

BLOCK = re.compile(r"^(`{3,})(?:\{code-block\} )?(\w+)\n(?::caption: (\S+)\n\n)?(.*?)^\1$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A code block of a page."""

    page: Path
    number: int
    language: str
    caption: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.number}"


def blocks(page: Path) -> Iterator[Block]:
    for number, match in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8"))):
        _, language, caption, text = match.groups()
        yield Block(page, number, language, caption or "", text)


def is_followed(page: Path) -> bool:
    """Whether tests/test_tutorials.py follows the page from its first line to its last."""
    return page.parent == DOCS / "tutorials" or page.read_text(encoding="utf-8").startswith("% followed")


ALL = [block for page in PAGES if page != FOLLOWED and not is_followed(page) for block in blocks(page)]


def of(language: str) -> list[Block]:
    return [block for block in ALL if block.language == language]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like the project's root to commands, with the files that the pages show."""
    for name in ("examples", "figures"):
        (tmp_path / name).symlink_to(ROOT / name)
    for block in ALL:
        if block.caption:
            (tmp_path / block.caption).write_text(block.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_smallest_figure_runs(tmp_path: Path) -> None:
    (tmp_path / "first.toml").write_text((DOCS / "smallest-figure.toml").read_text(encoding="utf-8"), encoding="utf-8")
    assert cli_figure(["first"], directory=tmp_path, out=tmp_path / "out") == 0
    assert (tmp_path / "out/first.png").exists()


def test_the_references_of_figures_have_every_function() -> None:
    pages = "".join((DOCS / page).read_text(encoding="utf-8") for page in ("figures.md", "reference/figure-curves.md"))
    assert not [name for name in FUNCTIONS if not re.search(rf"`{name}[`(]", pages)]


@pytest.mark.parametrize("block", of("toml"), ids=str)
def test_scenarios_run(block: Block, folder: Path) -> None:
    result = fs.loads(block.text, source=str(block), base_dir=folder).run()
    assert result.summary["total"]["goodput_bps"] > 0


LONG = re.compile("compare (examples/|five.toml)|python examples/|stability rcp --alpha")
"""Commands that take more than two seconds: each simulates several scenarios."""


def commands() -> list[Any]:
    lines = [
        (str(block), line.removeprefix("$ "))
        for block in of("console")
        for line in block.text.splitlines()
        if line.startswith("$ ")
    ]
    return [pytest.param(*one, marks=pytest.mark.long if LONG.search(one[1]) else ()) for one in lines]


@pytest.mark.parametrize(("where", "line"), commands())
def test_commands_run(where: str, line: str, folder: Path) -> None:
    program, *arguments = line.split()
    prefix = {"flowstamp": [sys.executable, "-m", "flowstamp"], "python": [sys.executable]}
    assert program in prefix, f"{where}: {line}"
    done = subprocess.run(
        [*prefix[program], *arguments], cwd=folder, capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, f"{where}: {line}\n{done.stderr}"


@pytest.mark.parametrize("block", of("python"), ids=str)
def test_python_runs(block: Block, folder: Path) -> None:
    script = folder / "block.py"
    script.write_text(block.text, encoding="utf-8")
    runpy.run_path(str(script))


REFERENCE = runpy.run_path(str(DOCS / "make_reference.py"))


def test_references_are_those_of_the_code() -> None:
    made: dict[Path, str] = REFERENCE["pages"]()
    stale = [str(path.relative_to(ROOT)) for path, text in made.items() if path.read_text(encoding="utf-8") != text]
    assert not stale, f"{', '.join(stale)}: not what the code says; run python docs/make_reference.py"


def test_the_reference_has_every_law() -> None:
    page = REFERENCE["laws"](fs.schema())
    for kind, tag in KINDS.items():
        assert all(f'### `{tag} = "{law}"`\n' in page for law in options(kind, tag))


def options(kind: str, tag: str) -> dict[str, dict[str, Any]]:
    """Parameters of each law of a kind, by its name."""
    found = {}
    for entry in REFERENCE["alternatives"](fs.schema()["$defs"][kind]):
        properties = dict(entry.get("properties", {}))
        if tag in properties:
            found[properties.pop(tag)["const"]] = properties
    return found


KINDS = {"SenderSpec": "law", "RouterSpec": "law", "QueueSpec": "kind", "ShareSpec": "scheduler"}


def told(page: Path, what: str) -> list[str]:
    """Returns a property that a model page states in its first lines, such as `% laws: xcp xcp-draft`."""
    found = re.search(rf"^% {what}: (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1].split() if found else []


@pytest.mark.parametrize("page", MODELS, ids=lambda path: path.stem)
def test_model_pages_have_every_parameter(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert told(page, "laws"), f"{page.name} begins with no line `% laws: NAME...`"
    for law in told(page, "laws"):
        found = [known[law] for kind, tag in KINDS.items() if law in (known := options(kind, tag))]
        assert found, f"{page.name}: there is no {law}"
        for key in (key for properties in found for key in properties):
            assert f"| `{key}` |" in text, f"{page.name} lacks {key} of {law}"


def test_every_law_has_a_model_page() -> None:
    named = {law for page in MODELS for law in told(page, "laws")} | {"none"}
    for kind, tag in KINDS.items():
        missing = options(kind, tag).keys() - named
        assert not missing, f"no model page says `% laws:` of {', '.join(sorted(missing))}"


@pytest.mark.parametrize("page", MODELS, ids=lambda path: path.stem)
def test_model_pages_have_their_sections(page: Path) -> None:
    titles = re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    wanted = ["Equations", "Parameters", "Use", "Deviations", "Validation"]
    assert [title for title in titles if title in wanted] == wanted


def deviations(source: str) -> int:
    """How many deviations the header of a module numbers."""
    header = (ROOT / "crates/flowstamp-laws/src" / source).read_text(encoding="utf-8").split("\n\n", 1)[0]
    _, _, numbered = header.partition("Deviations")
    return len(re.findall(r"^//! \d+\. ", numbered, re.MULTILINE))


@pytest.mark.parametrize("page", [page for page in MODELS if told(page, "sources")], ids=lambda path: path.stem)
def test_model_pages_tell_every_deviation(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    sources = told(page, "sources")
    section = text.partition("## Deviations")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\d+\. ", section, re.MULTILINE)) == sum(deviations(source) for source in sources)


def test_validation_names_tests_that_exist() -> None:
    for page in MODELS:
        text = page.read_text(encoding="utf-8")
        for package, tests in re.findall(r"cargo test -p (\S+)((?:\s+--test\s+\w+)+)", text):
            for test in re.findall(r"--test\s+(\w+)", tests):
                folder = ROOT / "crates" / package / "tests"
                files = (folder / f"{test}.rs", folder / test / "main.rs")
                assert any(file.exists() for file in files), f"{page.name}: {package} {test}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*PAGES, *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"))]:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            made = target.removeprefix("../").startswith("gallery/")  # by the build, whose links are looked at below
            assert made or (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


def test_the_index_names_every_page() -> None:
    named = set(re.findall(r"^([\w/*-]+)$", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE))
    written = [*(page for page in PAGES if page.is_relative_to(DOCS)), *NOTEBOOKS]
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in written} - {"index"}
    missing = {page for page in pages if not any(fnmatch(page, pattern) for pattern in named)}
    assert not missing, f"name in docs/index.md: {', '.join(sorted(missing))}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site without what takes long to make: pictures of figures, and what notebooks give."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", str(folder / "doctrees")]
    command += ["-D", "nb_execution_mode=off", str(DOCS), str(folder / "html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.mark.long
def test_the_site_has_a_page_for_each_figure(site: Path) -> None:
    pages = {page.stem for page in (site / "gallery").glob("*.html")}
    assert pages == {"index", *available()}


@pytest.mark.long
def test_the_site_leads_somewhere_and_loads_nothing_from_elsewhere(site: Path) -> None:
    command = [sys.executable, str(ROOT / "tools/check_site.py"), str(site)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ('<a href="gone.html">', "there is no gone.html"),
        ('<a href="#gone">', "there is no gone"),
        ('<a href="other.html#gone">', "there is no gone in other.html"),
        ('<script src="https://cdn.example/x.js"></script>', "comes from elsewhere"),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', "comes from elsewhere"),
        ('<style>@import "https://fonts.example/x.css"</style>', "comes from elsewhere"),
        ('<a href="https://example.org/">', ""),
        ('<a href="other.html#there"><img src="x.png">', ""),
    ],
)
def test_the_checker_of_a_site_finds_what_is_wrong(page: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(page)
    (tmp_path / "other.html").write_text('<p id="there">')
    (tmp_path / "x.png").write_bytes(b"")
    command = [sys.executable, str(ROOT / "tools/check_site.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, said in done.stderr) == (int(bool(said)), True)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_what_they_gave(notebook: Path) -> None:
    found = nbformat.read(notebook, as_version=4)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in found.cells)


@pytest.mark.long
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(notebook: Path) -> None:
    found = nbformat.read(notebook, as_version=4)
    nbclient.NotebookClient(found, timeout=120, kernel_name="python3").execute()
    assert any(cell.get("outputs") for cell in found.cells)


def test_the_reference_has_every_name_of_the_package() -> None:
    page = (DOCS / "reference/python.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\.\. auto\w+:: flowstamp\.([\w.]+)$", page, re.MULTILINE))
    missing = {
        name
        for name in set(fs.__all__) - {"__version__"}
        if not {f"{fs._HOME[name]}.{'load' if name == 'load_results' else name}", fs._HOME[name]} & named
    }
    assert not missing


def test_pages_name_the_rust_that_is_needed() -> None:
    package = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", DOCS / "getting-started.md"):
        assert package["rust-version"] in page.read_text(encoding="utf-8"), page


HELD = re.compile(r"Held by ((?:`[^`]+`(?:,\s+)?)+)")


def test_every_promise_of_security_names_what_holds_it() -> None:
    """A test, a proof or a fuzzer's target that there is; of the parts that promise something, each item names one."""
    page = (DOCS / "security.md").read_text(encoding="utf-8")
    parts = re.split(r"^## ", page, flags=re.MULTILINE)
    promising = [part for part in parts if part.startswith(("What an attacker", "What the programs touch"))]
    items = [item for part in promising for item in re.split(r"^- ", part, flags=re.MULTILINE)[1:]]
    assert len(promising) == 2
    assert len(items) > 15
    for item in items:
        assert HELD.search(item), item
    for names in HELD.findall(page):
        for held in re.findall(r"`([^`]+)`", names):
            file, _, name = held.partition("::")
            text = (ROOT / file).read_text(encoding="utf-8")
            assert re.search(rf"^\s*(fn|def|void) {name}\(" if name else "^fuzz_target!", text, re.MULTILINE), held


def test_the_readme_shows_what_the_demo_says(tmp_path: Path) -> None:
    """Its table, to the character."""
    done = subprocess.run(
        [sys.executable, "-m", "flowstamp", "demo"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    table = done.stdout[: done.stdout.index("\npicture")].strip()
    assert f"```text\n{table}\n```" in (ROOT / "README.md").read_text(encoding="utf-8")
