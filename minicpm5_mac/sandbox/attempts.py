"""What the canary's probes try, from inside the sandbox: run by the worker, so standard library.

A step is a function's name and its arguments; its outcome is `ok`, an errno's name, or a value.
Nothing here decides whether an outcome is right: probes.py does, and looks at the effects itself.
Each step must be harmless where nothing stops it, as root too: the canary runs exactly where that
is not known yet. So what can do harm is tried on the bench's own files only.
"""

from __future__ import annotations

import errno
import os
import socket
import sys


def attempt(steps: list[list]) -> list:
    """The outcome of each step, in order."""
    return [_outcome(_STEPS[name], arguments) for name, *arguments in steps]


def _outcome(step, arguments: list) -> object:
    try:
        value = step(*arguments)
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return "ok" if value is None else value


def write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def write_in_new_folder(path: str, text: str) -> None:
    if not os.path.isdir(os.path.dirname(path)):
        os.mkdir(os.path.dirname(path))
    write(path, text)


def write_in_tmp(name: str, text: str) -> None:
    write(os.path.join(os.environ["TMPDIR"], name), text)


def open_for_writing(path: str) -> None:
    """Only opened: what it is for must not change, should that work."""
    os.close(os.open(path, os.O_WRONLY))


def set_user_id(path: str) -> None:
    """Make a program that lends its owner's rights."""
    write(path, "")
    os.chmod(path, 0o4755)


def read(path: str) -> str:
    with open(path, errors="replace") as file:
        return file.read()


def link_and_write(source: str, link: str, text: str) -> None:
    os.link(source, link)
    write(link, text)


def symlink_and_write(target: str, link: str, text: str) -> None:
    os.symlink(target, link)
    write(link, text)


def connect_tcp(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=2):
        pass


def send_udp(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"canary", ("127.0.0.1", port))


def connect_unix(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def signal_process(pid: int) -> None:
    os.kill(pid, 0)


def environment_holds(marker: str) -> bool:
    """Whether a secret is in this environment or in one that can be looked into."""
    held = [value.encode() for value in os.environ.values()]
    if os.path.isdir("/proc"):
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    held.append(file.read())
            except OSError:
                continue
    return any(marker.encode() in value for value in held)


def open_terminal() -> None:
    os.close(os.open("/dev/tty", os.O_RDWR))


def inject_into_terminal() -> None:
    """TIOCSTI on a terminal of our own: what would type into the user's.

    In a child, for which it is the controlling terminal: on another one nobody may.
    """
    import fcntl
    import termios

    main, terminal = os.openpty()
    child = os.fork()
    if child == 0:
        code = 0
        try:
            os.setsid()
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
            fcntl.ioctl(terminal, termios.TIOCSTI, b"x")
        except OSError as error:
            code = error.errno or 255
        os._exit(code)
    os.close(main)
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(code, "TIOCSTI")


def trace_self() -> None:
    _call("ptrace", _PT_TRACE_ME, 0, 0, 0)


def trace(pid: int) -> None:
    _call("ptrace", _PT_ATTACH, pid, 0, 0)


def task_port(pid: int) -> None:
    """task_for_pid (mach/mach_traps.h): the port with which one process owns another."""
    import ctypes

    library = ctypes.CDLL(None)
    port = ctypes.c_uint(0)
    own = ctypes.c_uint.in_dll(library, "mach_task_self_")
    if library.task_for_pid(own, pid, ctypes.byref(port)) != 0:
        raise PermissionError(errno.EPERM, "task_for_pid")


def mount_over(folder: str) -> None:
    """Mount something on an empty folder of the bench, and take it off again should that work."""
    _call("mount", b"none", folder.encode(), b"tmpfs", 0, None)
    _call("umount2", folder.encode(), 2)  # MNT_DETACH, sys/mount.h


def new_user_namespace() -> None:
    _call("unshare", 0x10000000)  # CLONE_NEWUSER, linux/sched.h


def in_a_sandbox() -> bool:
    """sandbox_check(self, no operation): whether any profile applies (macOS)."""
    import ctypes

    library = ctypes.CDLL(None)
    library.sandbox_check.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
    return library.sandbox_check(os.getpid(), None, 0) == 1


def leave_writer(path: str) -> None:
    """Leave a daemon (setsid, double fork) that appends to a file for as long as it lives."""
    import time

    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    devnull = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(64):
        if descriptor != devnull:
            try:
                os.dup2(devnull, descriptor)
            except OSError:
                continue
    for _ in range(600):
        with open(path, "ab") as file:
            file.write(b"x")
        time.sleep(0.05)
    os._exit(0)


# sys/ptrace.h and linux/ptrace.h: PT_TRACE_ME; PT_ATTACHEXC is 14, PTRACE_ATTACH 16.
_PT_TRACE_ME, _PT_ATTACH = 0, 14 if sys.platform == "darwin" else 16

_STEPS = {
    step.__name__: step
    for step in (
        *(write, write_in_new_folder, write_in_tmp, read, link_and_write, symlink_and_write),
        *(connect_tcp, send_udp, connect_unix, signal_process, environment_holds),
        *(open_terminal, inject_into_terminal, trace_self, trace, task_port),
        *(mount_over, new_user_namespace, in_a_sandbox, leave_writer),
        *(open_for_writing, set_user_id),
        *(os.rename, os.unlink, os.listdir, os.link),
    )
}


def _call(name: str, *arguments: object) -> None:
    import ctypes

    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    if function(*arguments) == -1:
        raise OSError(ctypes.get_errno(), name)
