"""What no check here can see: for the owner of the Mac, in order, with what each step must show."""

from __future__ import annotations

from pathlib import Path

from info_plist import package_version

STEPS = """\
Now by hand. Each step says what it must print or show.

 1. {app}/Contents/MacOS/MiniCPM5 --version
      minicpm5-mac {version}
 2. codesign --verify --deep --strict --verbose=2 {app}
      "valid on disk" and "satisfies its Designated Requirement"
 3. {assess}
 4. {app}/Contents/MacOS/MiniCPM5 doctor
      every line well; 24 sandbox probes as expected; the Metal device by name
 5. {app}/Contents/MacOS/MiniCPM5 chat --model demo -p "Say hello."
      an answer (the first time, a download of 93 MB before it)
 6. Copy the app to /Applications and double-click it.
      a window with the chat within a few seconds, the icon in the Dock, nothing that asks for
      permission; on the first start: where the model will be stored, its size, and one key.
      Escape pauses the download, F5 goes on where it was
 7. Double-click it again.
      the same window comes to the front; `pgrep -f engine.child | wc -l` prints 1
 8. In the window: type, paste with Cmd+V, select and copy with Cmd+C, write 你好 with the Pinyin
    input method, resize, Cmd+plus, change between dark and light in System Settings.
      each does what it does elsewhere; a link opens in the browser, only when it is clicked
 9. Ask for something long; in mid-answer press Escape; ask again, and close the window.
      the answer stops; after the window is closed, `pgrep -fl minicpm5_mac` prints nothing
10. Open it again, ask for something long, and say `pkill -9 -f MacOS/MiniCPM5`.
      the window is gone; five seconds later `pgrep -fl minicpm5_mac` prints nothing
11. open -a MiniCPM5 --args --terminal
      Terminal opens with the chat; no question about Automation. Double-click the app beside it:
      "MiniCPM5 is already open in a terminal (/dev/ttys…), since …"
12. env -i HOME="$HOME" PATH=/usr/bin:/bin TERM="$TERM" {app}/Contents/MacOS/python -I -c \\
        "import sys, mlx.core as mx; print(sys.prefix, mx.default_device())"
      {app}/Contents and Device(gpu, 0)
13. codesign --verify --deep --strict {app}
      nothing, again: whatever ran has written nothing into the app
14. On another Mac, with macOS 14 if there is one: open the disk image, drag the app, open it.
      {elsewhere}"""

ASSESS = """\
spctl --assess --type execute --verbose {app}
      {answer}"""


def by_hand(app: Path, *, notarised: bool) -> str:
    """The numbered list, for an app that lies at `app`."""
    answer = (
        "accepted, source=Notarized Developer ID"
        if notarised
        else "rejected: it is not notarised. That is as it should be."
    )
    elsewhere = (
        "it opens after one question, whether to open something from the internet"
        if notarised
        else 'macOS says it is damaged or not verified; after `xattr -cr "/Applications/'
        f'{app.name}"` it opens'
    )
    assess = ASSESS.format(app=app, answer=answer)
    return STEPS.format(app=app, version=package_version(), assess=assess, elsewhere=elsewhere)
