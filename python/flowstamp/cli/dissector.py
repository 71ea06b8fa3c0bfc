# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp dissector`: prints the plug-in for Wireshark."""

from __future__ import annotations

from flowstamp.cli.common import say
from flowstamp.cli.options import Json, Out


def dissector(out: Out = None, as_json: Json = False) -> int:
    """Print the Lua plug-in that decodes stamps in Wireshark.

    tshark takes it, too. With --out, the folder gets flowstamp.lua.
    """
    import json

    from flowstamp._flowstamp import dissector_lua
    from flowstamp.files import write_whole

    text = dissector_lua()
    if out is not None:
        write_whole(out / "flowstamp.lua", text)
    say(json.dumps({"flowstamp.lua": text}) if as_json else text)
    return 0
