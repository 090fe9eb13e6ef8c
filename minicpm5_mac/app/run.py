"""Running the terminal app from start to end."""

from __future__ import annotations

import logging
import logging.handlers

from minicpm5_mac import locations
from minicpm5_mac.app.options import AppOptions

LOG_BYTES = 1_000_000


def run_app(options: AppOptions) -> int:
    """Run the app until the user leaves; returns the exit code.

    Raises Failure where there is no terminal to draw on.
    """
    _log_to_file()
    if options.linear:
        from minicpm5_mac.app.linear.chat import run_linear

        return run_linear(options)
    from minicpm5_mac.app.chat_app import ChatApp

    app = ChatApp(options)
    try:
        app.run()
    finally:
        app.live.close()
    # None: it ended, and nobody had asked it to.
    return 1 if app.return_code is None else app.return_code


def _log_to_file() -> None:
    folder = locations.log_dir()
    folder.mkdir(parents=True, exist_ok=True)
    handler = logging.handlers.RotatingFileHandler(
        folder / "app.log", maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8", delay=True
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("minicpm5_mac")
    root.addHandler(handler)
    root.propagate = False
