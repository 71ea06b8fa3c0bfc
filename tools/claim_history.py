#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Lists the claims of figures/*.toml that were changed or removed after they were first written, from git's history.

    tools/claim_history.py [FIGURE ...]

Prints a line for each claim whose expression, bound or tolerance changed, or that was removed: commit, figure, claim,
old and new. docs/notes/changed-claims.md gives the reasons.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True).stdout


def claims(commit: str, file: str) -> dict[str, str] | None:
    """Claims by id; None if the file had another format then."""
    try:
        found = tomllib.loads(git("show", f"{commit}:{file}")).get("claims", [])
        return {c["id"]: f"{' '.join(c['expr'].split())} {c['expected']} ± {c['tolerance']}" for c in found}
    except (subprocess.CalledProcessError, tomllib.TOMLDecodeError, KeyError):
        return None


def changes(file: str) -> Iterator[str]:
    before: dict[str, str] | None = None
    for commit in git("log", "--reverse", "--format=%h", "--", file).split():
        now = claims(commit, file)
        if now is None:
            continue
        for claim, was in (before or {}).items():
            if now.get(claim) != was:
                yield f"{commit} {Path(file).stem} {claim}: {was}  ->  {now.get(claim, 'gone')}"
        before = now


def main() -> None:
    for path in sorted((ROOT / "figures").glob("*.toml")):
        if len(sys.argv) == 1 or path.stem in sys.argv[1:]:
            for line in changes(f"figures/{path.name}"):
                print(line)


if __name__ == "__main__":
    main()
