"""What the app runs: the chat, or with words the command line, in a clean environment."""

import os
import sys

# py2app's stub tells its interpreter where it is through the environment. By now it has been
# read. Whatever we start finds itself (see `finishing.py`), and nobody's python3 may see this.
FROM_PY2APP = (
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONOPTIMIZE",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "RESOURCEPATH",
    "EXECUTABLEPATH",
    "ARGVZERO",
    "_PY2APP_LAUNCHED_",
    "__PYVENV_LAUNCHER__",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)


def given_arguments() -> list[str]:
    """Without the process serial number that older Finders add."""
    return [word for word in sys.argv[1:] if not word.startswith("-psn_")]


def run() -> int:
    """The window on a double click; `MiniCPM5.app/Contents/MacOS/MiniCPM5 WORDS` in a terminal."""
    for name in FROM_PY2APP:
        os.environ.pop(name, None)
    arguments = given_arguments()
    if arguments and arguments != ["--terminal"]:
        from minicpm5_mac.cli.main import main

        return main(arguments)
    from minicpm5_mac.launcher.launch import main as open_chat

    return open_chat(arguments)


sys.exit(run())
