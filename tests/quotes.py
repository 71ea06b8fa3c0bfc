# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Pages that quote what the claims of figures have recorded: the numbers in bold, and the claim of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from flowstamp.figures import available, load
from flowstamp.figures.memory import Memory
from flowstamp.figures.verdicts import HOLDING, Verdict

DOCS = Path(__file__).resolve().parents[1] / "docs"
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")


def recorded(figure: str) -> dict[str, Verdict]:
    return Memory.beside(available()).verdicts(load(figure))


@dataclass
class Page:
    """A page with a section for each figure, whose picture the section shows."""

    name: str
    prefix: str
    """How the names of its figures start."""
    units: str
    """Units of numbers in bold, as alternatives of a regular expression."""
    text: str = field(init=False)

    def __post_init__(self) -> None:
        self.text = (DOCS / self.name).read_text(encoding="utf-8")

    @property
    def figures(self) -> list[str]:
        """The names of its figures."""
        return [name for name in available() if name.startswith(self.prefix)]

    def sections(self) -> Iterator[tuple[str, str]]:
        """Each section with the figure whose picture it shows; empty if it has none."""
        for text in re.split(r"(?m)^(?=## )", self.text):
            shown = re.search(r"\[Picture of (\S+)\]", text)
            yield shown[1] if shown else "", text

    @property
    def quoted(self) -> re.Pattern[str]:
        """The pattern of a number in bold with its claim."""
        return re.compile(rf"\*\*([\d.]+)\*\*(?:\s+(?:{self.units}))?\s+\(`([\w-]+)`(?:\s+of\s+([\w-]+))?\)")

    def quotes(self) -> list[tuple[str, str, str, str]]:
        """Figure, claim, number as the page writes it, and the text from there to the next one in its paragraph."""
        found = []
        for own, text in self.sections():
            for block in re.split(r"\n\n|\n(?=- )", text):
                matches = list(self.quoted.finditer(block))
                ends = [*(match.start() for match in matches[1:]), len(block)]
                for match, end in zip(matches, ends, strict=False):
                    number, claim, of = match.groups()
                    found.append((of or own, claim, number, block[match.end() : end]))
        return found

    def check_bold_numbers(self, least: int) -> None:
        """Every number in bold is the mean that its claim has recorded."""
        found = self.quotes()
        assert len(found) >= least
        assert len(found) == len(re.findall(r"\*\*[\d.]+\*\*", self.text))
        for figure, claim, number, _ in found:
            verdict = recorded(figure)[claim]
            assert verdict.measured is not None
            decimals = len(number.partition(".")[2])
            assert f"{abs(verdict.measured):.{decimals}f}" == number, f"{figure} {claim}"

    def check_exceptions(self) -> None:
        """A claim that does not hold with every seed is quoted with its seeds."""
        for figure, claim, _, text in self.quotes():
            verdict = recorded(figure)[claim]
            if verdict.status != "holds":
                assert verdict.status in HOLDING or verdict.claim.explanation
                assert "seed" in text, f"{figure} {claim}"

    def check_other_numbers(self) -> None:
        """Every other number is of the set-up, which the figures' files have."""
        files = {name: available()[name].read_text(encoding="utf-8") for name in self.figures}
        for own, text in self.sections():
            known = set(NUMBER.findall(files[own] if own else " ".join(files.values())))
            prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", " ", self.quoted.sub(" ", text), flags=re.DOTALL)
            for number in NUMBER.findall(prose):
                assert number in known, f"{own or 'the page'}: {number}"
