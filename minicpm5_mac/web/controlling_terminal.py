"""`python -m minicpm5_mac.web.controlling_terminal COMMAND…`: become COMMAND, owning the terminal.

Run as the leader of a new session whose standard input is a pseudo-terminal. With it as the
controlling terminal, the kernel sends SIGHUP here when the server, which holds the other end, is
gone in whatever way: no app stays behind with a model in memory.
"""

from __future__ import annotations

import fcntl
import os
import sys
import termios


def main() -> None:
    """Take standard input as controlling terminal; the program is replaced by the command.

    Raises OSError where the server went first: there is no terminal any more then.
    """
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
