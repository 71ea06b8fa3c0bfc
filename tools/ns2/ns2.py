# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Run the ns-2 dumbbell beside this file and time it.

    >>> import ns2
    >>> ns2.run(protocol="xcp", rate_mbps=20, flows=50, duration_s=40)["utilization"]

Every keyword is a parameter of ``dumbbell.tcl`` (see its `param` table); lists become ``a,b,c`` and booleans 0 or 1.
From a shell: ``python3 ns2.py rate_mbps=20 flows=50``.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("dumbbell.tcl")
STARTUP_RUNS = 5


class Ns2Error(RuntimeError):
    """ns-2 is missing, refused the parameters, or did not finish."""


def binary() -> str | None:
    """Path of the ``ns`` program: ``$NS2`` if set, else the one on the PATH, else None."""
    return shutil.which(os.environ.get("NS2", "ns"))


def available() -> bool:
    """Whether the installed ``ns`` is ns-2 with the XCP model (other programs share the name)."""
    return binary() is not None and _has_xcp(str(binary()))


def run(*, timeout_s: float = 600.0, **params: Any) -> dict[str, Any]:
    """Run one dumbbell and return its JSON object, with these fields added.

    ``cpu_s``              user and system time of the ns process, start-up included
    ``startup_cpu_s``      the same for an empty script (least of five, measured once per process)
    ``ns_per_packet_hop``  (cpu_s - setup_cpu_s) per packet-hop, in nanoseconds; setup_cpu_s comes from the script
                           and covers start-up and building the network (startup_cpu_s stands in where it is null)
    """
    if not available():
        raise Ns2Error(
            "ns-2 with Queue/XCP not found: install it (Debian and Ubuntu: apt install ns2) "
            "or point the environment variable NS2 at its ns program"
        )
    arguments = [f"{key}={_text(value)}" for key, value in params.items()]
    stdout, cpu_s = _timed(str(binary()), [str(SCRIPT), *arguments], timeout_s)
    # Agent/TCP/Linux and Agent/RCP leave lines of their own around the report.
    lines = [line for line in stdout.splitlines() if line.startswith("{")]
    try:
        result: dict[str, Any] = json.loads(lines[-1])
    except (IndexError, json.JSONDecodeError) as error:
        raise Ns2Error(
            f"ns-2 printed no JSON for {' '.join(arguments)}; last lines: {stdout.splitlines()[-3:]}"
        ) from error
    result["cpu_s"] = cpu_s
    result["startup_cpu_s"] = startup_cpu_s()
    setup_s = result["setup_cpu_s"] if result["setup_cpu_s"] is not None else result["startup_cpu_s"]
    hops = result["packet_hops"]
    result["ns_per_packet_hop"] = (cpu_s - setup_s) / hops * 1e9 if hops else None
    return result


def startup_cpu_s() -> float:
    """CPU seconds ns takes to start, load its Tcl library and leave."""
    return _startup(str(binary()))


@functools.cache
def _startup(ns: str) -> float:
    with tempfile.NamedTemporaryFile("w", suffix=".tcl") as script:
        script.write("exit 0\n")
        script.flush()
        return min(_timed(ns, [script.name], 60.0)[1] for _ in range(STARTUP_RUNS))


@functools.cache
def _has_xcp(ns: str) -> bool:
    with tempfile.NamedTemporaryFile("w", suffix=".tcl") as script:
        script.write("puts [Queue/XCP info class]\nputs [Agent/TCP/Reno/XCP info class]\nexit 0\n")
        script.flush()
        try:
            return _timed(ns, [script.name], 60.0)[0].split() == ["Class", "Class"]
        except (Ns2Error, OSError):
            return False


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def _timed(ns: str, arguments: list[str], timeout_s: float) -> tuple[str, float]:
    """Standard output and CPU seconds of one ns process, from its own rusage."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen([ns, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        expired = threading.Event()

        def stop() -> None:
            expired.set()
            child.kill()

        timer = threading.Timer(timeout_s, stop)
        timer.start()
        try:
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:
            child.kill()
            raise
        finally:
            timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        stdout = out.read().decode(errors="replace")
        if expired.is_set():
            raise Ns2Error(f"ns-2 was stopped after {timeout_s} s")
        if child.returncode != 0:
            message = err.read().decode(errors="replace").strip()
            raise Ns2Error(f"ns-2 left with code {child.returncode}: {message[-2000:]}")
        return stdout, usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    try:
        print(json.dumps(run(**dict(argument.split("=", 1) for argument in sys.argv[1:]))))
    except (Ns2Error, ValueError) as error:
        sys.exit(f"ns2.py: {error}")
