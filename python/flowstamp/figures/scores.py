# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The papers, and how many of their published results hold, by `expected.json`.

Claims of a figure that have the same words, or the same `result`, share one published result. It holds if each of them
holds on average. Claims that are ours and identities do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from flowstamp.figures.memory import Memory
from flowstamp.figures.spec import FigureSpec
from flowstamp.figures.verdicts import HOLDING, Status, Verdict

PAPERS = {
    "Katabi, Handley, Rohrs 2002": "XCP",
    "Dukkipati 2007": "RCP",
    "Xia, Subramanian, Stoica, Kalyanaraman 2008": "VCP",
    "Abrantes and Ricardo 2006": "XCP-b",
    "Katabi and Handley 2001": "PCP",
}
"""The protocol that each paper proposes, by authors and year."""


def paper_of(spec: FigureSpec) -> str:
    """Returns the authors and year of a figure's paper."""
    found = re.match(r".*?\b\d{4}\b", spec.paper)
    return found[0] if found else spec.paper


@dataclass(frozen=True)
class Result:
    """A published result, and the verdicts on the claims that state it."""

    figure: FigureSpec
    verdicts: tuple[Verdict, ...]

    @property
    def status(self) -> Status:
        """The status of the first claim that does not hold on average, or of the first one."""
        return next((v.status for v in self.verdicts if v.status not in HOLDING), self.verdicts[0].status)

    @property
    def holds(self) -> bool:
        """Whether each claim holds on average."""
        return self.status in HOLDING


@dataclass(frozen=True)
class Score:
    """How many results of a paper hold."""

    law: str
    results: tuple[Result, ...]

    @property
    def held(self) -> int:
        """The number of results that hold."""
        return sum(result.holds for result in self.results)

    @property
    def provisional(self) -> int:
        """The number of results that hold with seed 1, where other seeds have not run yet."""
        return sum(result.holds and any(one.provisional for one in result.verdicts) for result in self.results)

    @property
    def unmeasured(self) -> int:
        """The number of results without a measurement, which do not count as held."""
        return sum(any(not one.values for one in result.verdicts) for result in self.results)

    @property
    def but(self) -> str:
        """The score's limits, in words; empty if there are none."""
        limits = ((self.provisional, "of these by one seed"), (self.unmeasured, "not measured"))
        return ", ".join(f"{count} {what}" for count, what in limits if count)

    def __str__(self) -> str:
        return f"{self.law} {self.held} of {len(self.results)}" + (f" ({self.but})" if self.but else "")


def results(spec: FigureSpec, verdicts: Mapping[str, Verdict]) -> Iterator[Result]:
    """Yields the published results of a figure, each once."""
    shared: dict[str, list[Verdict]] = {}
    for claim in spec.claims:
        if claim.whose == "paper":
            shared.setdefault(claim.result or claim.paper, []).append(verdicts[claim.id])
    for several in shared.values():
        yield Result(spec, tuple(several))


def scores(specs: Iterable[FigureSpec], memory: Memory) -> list[Score]:
    """Returns the score of each paper, from the values of the full versions."""
    found: dict[str, list[Result]] = {law: [] for law in PAPERS.values()}
    for spec in specs:
        paper = paper_of(spec)
        found.setdefault(PAPERS.get(paper, paper), []).extend(results(spec, memory.all_verdicts(spec)))
    return [Score(law, tuple(several)) for law, several in found.items() if several]
