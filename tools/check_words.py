# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Checks the English of documentation, comments, docstrings, help and error messages: part of `make lint`.

    python tools/check_words.py [ROOT]

A sentence may not contain a phrase of `BANNED` or have more than `WORDS` words. Each finding is one line: file, line,
the phrase, and what to write. Code, headings and questions may start with any word.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

WORDS = 40
NOT_CHECKED = (
    "CHANGELOG.md",
    "docs/notes/",
    "docs/results/",
    "fuzz/corpus/",
    "tools/check_words.py",
    "tests/test_words.py",
)
"""Dated notes, generated pages, data, and the lint with its test."""

STATEMENT = r"(?!.*\?$|(?: [^\s.]+){1,3}$)"
"""After the first word: neither a question nor a title of up to four words."""
ONE_VERBS = "has|must|can|may|might|would|should|could|sees|wants|needs|knows|asks|says|does|had"
BANNED = {
    rf"^(?:What|Whatever)\b{STATEMENT}": "start with the subject: 'Untrusted input has a fuzz target'",
    rf"^(?:Who|Whoever|Whose|Whom)\b{STATEMENT}": "name the people: 'Readers who ...', 'Misbehaving senders ...'",
    r"^Of (?!course\b)": "start with the subject: 'The sender stops ...'",
    r"^So\b(?! far\b)": "drop it, or write 'Therefore'",
    r"(?i)\b(?:somebody|someone)\b": "name the person or the program",
    r"(?i)\b(?:it|that|this) is said\b": "say who says it, or link to the place",
    rf"(?i)(?:^|\b(?:if|as|what|where|because|how) )one (?:{ONE_VERBS})\b": "write 'you', or name the thing",
    r"(?i)\bone's own\b|\boneself\b": "write 'your', or name the thing",
    r"(?i)\bbut for\b|\bsave for\b": "write 'except'",
    r"(?i)\bis nothing (?:it|that)\b": "write 'is not available'",
    r"(?i)\bfrom when\b": "write 'starts at', or 'warm-up'",
    r"(?i)\b(?:near|at) rest\b": "write 'near equilibrium', 'steady' or 'idle'",
    r"(?i)\bthe like\b": "write 'and similar ones', or name them",
    r"(?i)\bnothing but\b": "write 'only'",
    r"(?i)\bwhat (?:waits?|waited|it got|strangers|touches|dies)\b": "use the noun: 'the queue', 'throughput'",
    r"(?i)\bthere may be\b": "say who allows it: 'at most N flows are tracked'",
    r"(?i)\bwithout effect\b": "remove it, or say what to do instead",
    r"(?i)\bhow (?:full|they came|it came)\b": "use the noun: 'utilisation', 'history'",
    r"(?i)\bhas each its\b": "write 'each ... has'",
    r"(?i)\bwhence\b|\blest\b|\bthereof\b|\bthereby\b": "use a plain word",
    r"(?i)\bas long as the run goes\b|\bstands on standard\b": "write 'during the run', 'on standard error'",
}
BANNED_PATTERNS = {re.compile(pattern): advice for pattern, advice in BANNED.items()}


def lexer(comment: str, string: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<comment>{comment})|(?P<string>{string})", re.DOTALL)


HASH = r"#[^\n]*(?:\n[ \t]*#[^\n]*)*"
C = lexer(
    r"//[^\n]*(?:\n[ \t]*//[^\n]*)*|/\*.*?\*/",
    r"""r(?P<hashes>#*)".*?"(?P=hashes)|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\\n])'""",
)
PYTHON = lexer(HASH, r'''"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'\'\'.*?\'\'\'|'(?:\\.|[^'\\\n])*\'''')
SHELL = lexer(rf"(?m:^[ \t]*{HASH})", r"(?!)")
LEXERS = {
    **dict.fromkeys([".rs", ".c", ".h", ".ts"], C),
    **dict.fromkeys([".py", ".pyi", ".toml"], PYTHON),
    ".md": SHELL,
    **dict.fromkeys([".sh", ".yml", "Makefile"], SHELL),
}
COMMENT_MARK = re.compile(r"(?m)^[ \t]*(?://[/!]?|/?\*+(?!\*)|#+)[ \t]?|[ \t]*\*/")
BOUNDARY = re.compile(
    r"""(?<=[.!?:])["')*]*\s+(?=[A-Z`"'(*\[_\d])|(?<=;)\s"""  # the end of a sentence
    r"|\n\s*\n|\n[ \t]*(?:[-*]|\d+\.)[ \t]|\n(?=[ \t]*[#|])|\||\\n"  # a paragraph, an item, a heading, a cell
    r"|\n(?=[ \t]*\w+:\s|[ \t]{4}|[^\n]*\S {2,}\S)| / "  # an argument, a table, a deviation
)


FENCED = r"(?ms)^[ \t]*(`{3,}|~{3,}).*?^[ \t]*\1|^\$\$.*?\$\$|SPDX[^\n]*"


def blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def code(match: re.Match[str]) -> str:
    return re.sub(r"[^\n`]", "x", match[0])


def prose(path: Path) -> Iterator[tuple[int, str, bool]]:
    """Yields each piece of English in a file, with its line and whether it consists of sentences."""
    lex = LEXERS.get(path.suffix) or LEXERS.get(path.name)
    if not lex:
        return
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield 1, re.sub(rf"{FENCED}|^#[^\n]*", blank, text), True
        return
    for match in lex.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["comment"] is not None:
            yield line, re.sub(FENCED, blank, COMMENT_MARK.sub("", match[0])), True
        elif " " in match[0]:
            triple = (
                match[0].startswith('"""')
                and match[0][3] not in "\\<"
                and path.suffix in (".py", ".toml")
                and " = " not in match[0]
            )
            indent = match.start() - text.rfind("\n", 0, match.start()) - 1
            yield line, match[0].strip("\"'").replace("\n" + " " * indent, "\n"), triple


def sentences(path: Path) -> Iterator[tuple[int, str, bool]]:
    """Yields each sentence on one line, with the line where it starts."""
    for first, piece, whole in prose(path):
        text = re.sub(r"`[^`]+`", code, piece)
        start = 0
        for boundary in [*BOUNDARY.finditer(text), None]:
            end = boundary.start() if boundary else len(text)
            sentence = text[start:end]
            line = first + text.count("\n", 0, end - len(sentence.lstrip()))
            if sentence := re.sub(r"^[-*>_(\[\"]+\s*", "", " ".join(sentence.split())):
                yield line, sentence, whole
            start = boundary.end() if boundary else end


def findings(path: Path) -> Iterator[str]:
    """Yields a line for each banned phrase and each long sentence of a file, without the file's name."""
    for line, sentence, whole in sentences(path):
        for pattern, advice in BANNED_PATTERNS.items():
            if match := pattern.search(sentence):
                yield f"{line}: '{match[0]}' in '{sentence[:60]}': {advice}"
        words = len(re.findall(r"[A-Za-z]{2,}|\ba\b", re.sub(r"\$[^$]*\$|\([^)]*\)", "", sentence)))
        if whole and words > WORDS:
            yield f"{line}: {words} words in '{sentence[:60]}': split it; aim for 20 words"


def main(root: Path) -> int:
    """Prints the findings of all files that git knows; returns 1 if there are any."""
    names = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, text=True).splitlines()
    found = [f"{name}:{line}" for name in names if not name.startswith(NOT_CHECKED) for line in findings(root / name)]
    for line in found:
        print(line)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]))
