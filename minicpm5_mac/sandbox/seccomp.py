"""The system call filter of the Linux sandbox, as classic BPF for `bwrap --seccomp`.

Written out by hand: libseccomp is one more thing to install, and the program is a list of
comparisons. Instruction format: linux/filter.h; the data it reads: struct seccomp_data in
linux/seccomp.h (number at 0, architecture at 4, arguments from 16, 8 bytes each).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from errno import ENOSYS, EPERM

# linux/bpf_common.h: BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_{JEQ,JGE,JSET}|BPF_K, BPF_RET|BPF_K.
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
# linux/seccomp.h
ALLOW, KILL_PROCESS, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16

X32_BIT = 0x40000000  # asm/unistd.h __X32_SYSCALL_BIT: a second numbering of the same calls
CLONE_NEWUSER = 0x10000000
TERMINAL_INJECTION = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX (asm-generic/ioctls.h, linux/tiocl.h)
# AF_INET, AF_INET6, AF_NETLINK: in an own network namespace they reach nobody. AF_UNIX would
# reach docker.sock and the ssh agent, AF_VSOCK the host of a virtual machine.
SOCKET_FAMILIES = (2, 10, 16)

# S_ISUID and S_ISGID (linux/stat.h): a program with them, left in the workspace, lends the user's
# rights to whoever runs it, as systemd's RestrictSUIDSGID= has it.
SET_ID_BITS = 0o6000
# O_CREAT and __O_TMPFILE (asm-generic/fcntl.h): open reads a mode only with one of them.
MAKES_FILE = 0o100 | 0o20000000

# The calls that give a file its mode, by name: (x86_64, aarch64), the argument with the mode, and
# the one with open's flags. None: not a call of that machine.
MODE_CALLS: dict[str, tuple[tuple[int | None, int | None], int, int | None]] = {
    "open": ((2, None), 2, 1),
    "openat": ((257, 56), 3, 2),
    "creat": ((85, None), 1, None),
    "mknod": ((133, None), 1, None),
    "mknodat": ((259, 33), 2, None),
    "chmod": ((90, None), 1, None),
    "fchmod": ((91, 52), 1, None),
    "fchmodat": ((268, 53), 2, None),
}
# Newer forms whose mode lies in memory, or that libc falls back from: as if the kernel were older.
NO_SUCH_CALLS = {"openat2": 437, "fchmodat2": 452}

# name: (x86_64, aarch64), from asm/unistd_64.h and asm-generic/unistd.h of Linux 6.1.
DENIED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "syslog": (103, 116),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
}


@dataclass(frozen=True)
class Architecture:
    """One machine's numbers. audit: AUDIT_ARCH_… of linux/audit.h."""

    audit: int
    column: int
    socket: int
    ioctl: int
    clone: int
    clone3: int


ARCHITECTURES = {
    "x86_64": Architecture(0xC000003E, 0, socket=41, ioctl=16, clone=56, clone3=435),
    "aarch64": Architecture(0xC00000B7, 1, socket=198, ioctl=29, clone=220, clone3=435),
}


def seccomp_program(machine: str) -> bytes:
    """The filter for `machine` (as `platform.machine()` names it), 8 bytes per instruction.

    Denied calls fail with EPERM, so that programs report them. No file gets a set-user-ID or
    set-group-ID bit. clone3 says ENOSYS: its flags lie
    in memory a filter cannot read, and libc then falls back to clone, whose flags it can.
    A call under a foreign architecture (32-bit code) kills the process.
    Raises KeyError for a machine without a table.
    """
    table = ARCHITECTURES[machine]
    deny, no_such_call = _return(ERRNO | EPERM), _return(ERRNO | ENOSYS)
    program = [
        _instruction(LOAD, ARCHITECTURE),
        _instruction(EQUAL, table.audit, when_true=1),
        _return(KILL_PROCESS),
        _instruction(LOAD, NUMBER),
    ]
    if machine == "x86_64":
        program += [_instruction(AT_LEAST, X32_BIT, when_false=1), no_such_call]
    for numbers in DENIED.values():
        program += [_instruction(EQUAL, numbers[table.column], when_false=1), deny]
    program += [_instruction(EQUAL, table.clone3, when_false=1), no_such_call]
    for number in NO_SUCH_CALLS.values():
        program += [_instruction(EQUAL, number, when_false=1), no_such_call]
    # The blocks below load an argument; each ends in a verdict, so the number is still loaded
    # where a block was skipped.
    program += _argument_block(
        table.clone,
        0,
        [_instruction(ANY_BIT, CLONE_NEWUSER, when_false=1), deny],
    )
    for_injection = [
        line
        for request in TERMINAL_INJECTION
        for line in (_instruction(EQUAL, request, when_false=1), deny)
    ]
    program += _argument_block(table.ioctl, 1, for_injection)
    for_families = [
        line
        for family in SOCKET_FAMILIES
        for line in (_instruction(EQUAL, family, when_false=1), _return(ALLOW))
    ]
    program += _argument_block(table.socket, 0, [*for_families, deny])
    for numbers, mode, flags in MODE_CALLS.values():
        number = numbers[table.column]
        if number is None:
            continue
        body = [_instruction(ANY_BIT, SET_ID_BITS, when_false=1), deny]
        if flags is not None:
            body = [
                _instruction(ANY_BIT, SET_ID_BITS, when_false=3),
                _instruction(LOAD, ARGUMENTS + 8 * flags),
                _instruction(ANY_BIT, MAKES_FILE, when_false=1),
                deny,
            ]
        program += _argument_block(number, mode, body)
    program.append(_return(ALLOW))
    return b"".join(program)


def _instruction(code: int, value: int, *, when_true: int = 0, when_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, when_true, when_false, value)


def _return(verdict: int) -> bytes:
    return _instruction(RETURN, verdict)


def _argument_block(number: int, argument: int, body: list[bytes]) -> list[bytes]:
    """For call `number`: load the low half of an argument, run `body`, else allow.

    The low 32 bits are what the kernel reads of an `int` argument; both machines are
    little-endian.
    """
    block = [_instruction(LOAD, ARGUMENTS + 8 * argument), *body, _return(ALLOW)]
    return [_instruction(EQUAL, number, when_false=len(block)), *block]
