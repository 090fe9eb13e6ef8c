"""Where file tools may go: paths resolved by hand, one folder after the other, inside the worker.

The sandbox also shows what belongs to the system (`/etc`, `/usr`); a file tool has no business
there. So a path is walked from the descriptor of a root, no link is followed by the kernel, and
each link's text is walked the same way: what is opened lies below a root, whatever somebody
changes meanwhile (openat2's RESOLVE_BENEATH does this on Linux alone).
"""

from __future__ import annotations

import errno
import os
import stat

MOST_LINKS = 40  # as Linux: path_resolution(7)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ToolError(Exception):
    """What went wrong, and what the model can do next."""


class MissingFolder(ToolError):
    """A folder on the way is not there."""


class Spot:
    """A resolved place below a root: `name` in the folder `folder` (a descriptor).

    name is `.` for a root itself. path: absolute, for people. The last part may not exist; it is
    never a link. writable: the root may be written. stat: None where nothing is there. The
    descriptor is closed with the spot.
    """

    def __init__(self, folder: int, name: str, path: str, writable: bool) -> None:
        self.folder = folder
        self.name = name
        self.path = path
        self.writable = writable
        try:
            self.stat = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            self.stat = None

    def __del__(self) -> None:
        os.close(self.folder)


def resolve(place: dict, path: str, *, make_folders: bool = False) -> Spot:
    """Where `path` leads. Raises ToolError for what lies outside of the roots or cannot be.

    place: {"roots": [[path, writable], …], …}, the workspace first; relative paths start there.
    """
    root, writable, rest = _root_of(place, path or ".")
    try:
        return _walk(place, root, writable, rest, path, make_folders)
    except FileNotFoundError as error:
        raise MissingFolder(said(error, path)) from error
    except OSError as error:
        raise ToolError(said(error, path)) from error


def _root_of(place: dict, path: str) -> tuple[str, bool, str]:
    if not path.startswith("/"):
        root, writable = place["roots"][0]
        return root, writable, path
    # The second spelling is for `/tmp/x` where the root is `/private/tmp/x`.
    for spelling in (path, os.path.realpath(path)):
        for root, writable in place["roots"]:
            if spelling == root or spelling.startswith(root + "/"):
                return root, writable, spelling[len(root) :]
    raise outside(place, path)


def _walk(place: dict, root: str, writable: bool, rest: str, path: str, make_folders: bool) -> Spot:
    folders = [os.open(root, _FOLDER)]
    try:
        return _walk_from(folders, place, root, writable, rest, path, make_folders)
    finally:
        for folder in folders:
            os.close(folder)


def _walk_from(
    folders: list[int],
    place: dict,
    root: str,
    writable: bool,
    rest: str,
    path: str,
    make_folders: bool,
) -> Spot:
    """folders: open descriptors on the way; the one that the spot keeps is taken out."""
    names: list[str] = []
    parts = _parts(rest)
    links = 0
    while parts:
        part = parts.pop(0)
        if part == "..":
            if not names:
                raise outside(place, path)
            names.pop()
            os.close(folders.pop())
            continue
        link = _link(folders[-1], part)
        if link is not None:
            links += 1
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if link.startswith("/"):
                # Once more from the root it leads to, with what is left of the path.
                root, writable, below = _root_of(place, link)
                folders.append(os.open(root, _FOLDER))
                while len(folders) > 1:
                    os.close(folders.pop(0))
                names = []
                parts = _parts(below) + parts
            else:
                parts = _parts(link) + parts
            continue
        if not parts:
            return Spot(folders.pop(), part, "/".join([root, *names, part]), writable)
        if make_folders and writable:
            try:  # noqa: SIM105 (contextlib would be one more import)
                os.mkdir(part, dir_fd=folders[-1])
            except FileExistsError:
                pass
        folders.append(os.open(part, _FOLDER, dir_fd=folders[-1]))
        names.append(part)
    if names:
        return Spot(folders.pop(-2), names[-1], "/".join([root, *names]), writable)
    return Spot(folders.pop(), ".", root, writable)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _link(folder: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise


def outside(place: dict, path: str) -> ToolError:
    roots = ", ".join(root for root, _ in place["roots"])
    return ToolError(f"{path} is outside of {roots}. Use a path relative to the workspace.")


def missing(spot: Spot, path: str) -> ToolError:
    """That nothing is there, and what is there under a similar name."""
    import difflib
    import unicodedata

    def folded(name: str) -> str:
        return unicodedata.normalize("NFC", name).casefold()

    names = {folded(name): name for name in os.listdir(spot.folder)}
    near = difflib.get_close_matches(folded(spot.name), names, n=3, cutoff=0.6)
    hint = ", ".join(shown_name(names[name]) for name in near)
    advice = f"Similar names there: {hint}." if hint else "list_dir shows what there is."
    return ToolError(f"There is no {path}. {advice}")


def open_file(place: dict, path: str) -> tuple[Spot, int]:
    """A regular file, opened for reading. Raises ToolError, in other words for each other thing."""
    spot = resolve(place, path)
    if spot.stat is None:
        raise missing(spot, path)
    if stat.S_ISDIR(spot.stat.st_mode):
        raise ToolError(f"{path} is a folder. Use list_dir.")
    if not stat.S_ISREG(spot.stat.st_mode):
        raise ToolError(f"{path} is no regular file (a pipe, socket or device).")
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(spot.name, flags, dir_fd=spot.folder)
    except OSError as error:
        raise ToolError(said(error, path)) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise ToolError(f"{path} changed while it was opened. Try again.")
    return spot, descriptor


def stamp(status: os.stat_result) -> str:
    """Tells whether a file is still the one that was read, unchanged."""
    return f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"


def shown_name(name: str) -> str:
    """A file name that cannot pass for two lines."""
    return name.replace("\n", "\u240a").replace("\r", "\u240d")


def said(error: OSError, path: str) -> str:
    """An operating system's error in words for the model."""
    if error.errno == errno.ENOENT:
        return f"There is no {path}: a folder on the way is missing. list_dir shows what there is."
    if error.errno == errno.ENOTDIR:
        return f"{path} leads through a file that is no folder."
    if error.errno == errno.ENAMETOOLONG:
        return (
            f"The name is too long (ENAMETOOLONG): at most 255 bytes a part. Shorten {path[:80]}…"
        )
    if error.errno == errno.ELOOP:
        return f"{path} leads through links in a circle."
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"{path} cannot be opened that way: the sandbox or its permissions forbid it."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "The disk is full. Nothing was changed. Tell the user."
    if error.errno == errno.EFBIG:
        return f"{path} would be larger than a tool may write. Nothing was changed."
    return f"{path}: {error.strerror or error}"
