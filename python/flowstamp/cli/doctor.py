# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp doctor`: reports what is installed."""

from __future__ import annotations

from flowstamp.cli.common import as_text, say
from flowstamp.cli.options import Json, Out
from flowstamp.errors import ResultsError


def doctor(out: Out = None, as_json: Json = False) -> int:
    """Report what is installed. With --out, the folder gets doctor.json."""
    from flowstamp import doctor as checks
    from flowstamp.files import write_whole

    found = checks.report()
    text = as_text(found)
    if out is not None:
        write_whole(out / "doctor.json", text + "\n")
    say(text if as_json else "\n".join(checks.lines(found)))
    missing = checks.problems(found)
    if missing:
        raise ResultsError("; ".join(missing))
    return 0
