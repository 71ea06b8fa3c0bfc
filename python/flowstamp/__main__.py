# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Entry point of the command `flowstamp`."""

from __future__ import annotations

import gc
import signal
import sys

from flowstamp import streams


def main() -> None:
    """Runs the command and exits."""
    if hasattr(signal, "SIGPIPE"):
        # A reader such as `head` may close the pipe. The command then ends silently, like any Unix tool.
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
    """Prints the version without loading the rest of the command, because scripts ask for it often."""
    from flowstamp import _flowstamp

    try:
        sys.stdout.write(f"flowstamp {_flowstamp.__version__}\n")
        sys.stdout.flush()
    except OSError as error:
        streams.output_failed(error)
        return 2
    return 0


def _command() -> int:
    # Most objects (modules, parts of pictures) live until exit. Collecting at every 700 objects costs 10% more time.
    gc.set_threshold(50_000)
    from flowstamp.cli import run_command

    return run_command(sys.argv[1:])


if __name__ == "__main__":
    main()
