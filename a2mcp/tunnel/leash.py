"""Run as a script before the tunnel's program: ties its life to the daemon's, then becomes it.

A daemon that is killed cannot close its tunnel, and a public name must not outlive the one who opened it. Linux only:
elsewhere there is no such tie, and the program is started without this.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Take the daemon's process id and the program with its arguments."""
    daemon, *argv = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(daemon):
        sys.exit("the daemon is gone")
    try:
        os.execv(argv[0], argv)  # noqa: S606  # That is what it is for.
    except OSError as error:
        sys.exit(f"{argv[0]} cannot be run: {error.strerror}")


if __name__ == "__main__":
    main()
