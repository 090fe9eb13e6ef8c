"""A message to somebody who double-clicked, and has no terminal in which to read one."""

from __future__ import annotations

import subprocess
import sys

OSASCRIPT = "/usr/bin/osascript"

# The texts come as arguments, so that nothing in them is script. `display alert` of osascript's
# own needs no permission to steer another app.
_SCRIPT = """\
on run words
  display alert (item 1 of words) message (item 2 of words) as critical
end run"""


def show_alert(title: str, text: str) -> None:
    """Show the message until it is dismissed; on standard error where there are no alerts."""
    if sys.platform == "darwin":
        try:
            subprocess.run((OSASCRIPT, "-e", _SCRIPT, title, text), check=True)
            return
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"no alert: {error}", file=sys.stderr)
    print(f"{title}\n{text}", file=sys.stderr)
