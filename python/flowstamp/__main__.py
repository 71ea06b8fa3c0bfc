# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The command `flowstamp`."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Runs the command and exits."""
    if hasattr(signal, "SIGPIPE"):
        # Whoever reads our output may go away, as `head` does: that ends the command in silence, as any other.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        if sys.argv[1:] == ["--version"]:
            # Asked so often, by scripts, that it goes without the rest of the command.
            from flowstamp import _flowstamp

            sys.stdout.write(f"flowstamp {_flowstamp.__version__}\n")
            sys.exit(0)
        from flowstamp.cli import run_command

        code = run_command(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
