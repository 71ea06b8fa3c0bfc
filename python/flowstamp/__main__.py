# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The command `flowstamp`."""

from __future__ import annotations

import gc
import signal
import sys

from flowstamp import streams


def main() -> None:
    """Runs the command and exits."""
    if hasattr(signal, "SIGPIPE"):
        # Whoever reads our output may go away, as `head` does: that ends the command in silence, as any other.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        if streams.prepare():
            code = _version() if sys.argv[1:] == ["--version"] else _command()
        else:
            streams.tell(f"flowstamp: {streams.CLOSED}")
            code = 2
    except KeyboardInterrupt:
        streams.tell("interrupted")
        code = 130
    sys.exit(code)


def _version() -> int:
    """Asked so often, by scripts, that it goes without the rest of the command."""
    from flowstamp import _flowstamp

    try:
        sys.stdout.write(f"flowstamp {_flowstamp.__version__}\n")
        sys.stdout.flush()
    except OSError as error:
        streams.output_failed(error)
        return 2
    return 0


def _command() -> int:
    # Modules, and what a picture is made of, live on: a look through them every 700 objects takes a tenth more.
    gc.set_threshold(50_000)
    from flowstamp.cli import run_command

    return run_command(sys.argv[1:])


if __name__ == "__main__":
    main()
