# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp schema`: prints the JSON Schema of scenarios."""

from __future__ import annotations

from flowstamp.cli.common import as_text, say
from flowstamp.cli.options import Json, Out


def schema(out: Out = None, as_json: Json = False) -> int:
    """Print the JSON Schema of scenarios. With --out, the folder gets scenario.schema.json."""
    from flowstamp import scenario
    from flowstamp.files import write_whole

    del as_json  # the output is JSON in any case
    text = as_text(scenario.schema())
    if out is not None:
        write_whole(out / "scenario.schema.json", text + "\n")
    say(text)
    return 0
