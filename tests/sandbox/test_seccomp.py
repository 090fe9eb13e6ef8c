"""The system call filter, executed here instruction by instruction for both machines.

The expected verdicts are stated by name; the numbers come from the kernel's own headers where
they are installed, so that a wrong number in our table is found.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from minicpm5_mac.sandbox import seccomp
from minicpm5_mac.sandbox.seccomp import ALLOW, ARCHITECTURES, KILL_PROCESS, seccomp_program

EPERM, ENOSYS = 0x00050001, 0x00050000 | 38
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
BOTH = pytest.mark.parametrize("machine", list(ARCHITECTURES))


def verdict(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """What the kernel's interpreter (net/core/filter.c) would return for one call."""
    filled = [*arguments, *[0] * (6 - len(arguments))]
    arch = ARCHITECTURES[machine].audit if audit is None else audit
    data = struct.pack("<IIQ6Q", number, arch, 0, *filled)
    program = list(struct.iter_unpack("=HBBI", seccomp_program(machine)))
    accumulator, at = 0, 0
    while True:
        code, when_true, when_false, value = program[at]
        at += 1
        if code == seccomp.LOAD:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif code == seccomp.RETURN:
            return value
        else:
            holds = {
                seccomp.EQUAL: accumulator == value,
                seccomp.AT_LEAST: accumulator >= value,
                seccomp.ANY_BIT: bool(accumulator & value),
            }[code]
            at += when_true if holds else when_false


def numbers(machine: str) -> dict[str, int]:
    header = HEADERS[machine]
    if not header.exists():
        pytest.skip("needs the kernel's headers: sudo apt install linux-libc-dev")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
    return {name: int(number) for name, number in found}


@BOTH
def test_denied_calls_fail_with_eperm(machine):
    for name, own in seccomp.DENIED.items():
        assert verdict(machine, own[ARCHITECTURES[machine].column]) == EPERM, name


@BOTH
def test_numbers_are_those_of_the_kernel(machine):
    known = numbers(machine)
    table = ARCHITECTURES[machine]
    for name, own in seccomp.DENIED.items():
        assert own[table.column] == known[name], name
    for name in ("socket", "ioctl", "clone", "clone3"):
        assert getattr(table, name) == known[name]


@BOTH
def test_everyday_calls_are_allowed(machine):
    known = numbers(machine)
    everyday = "read write openat close execve exit_group socketpair connect bind futex mmap wait4"
    for name in everyday.split():
        assert verdict(machine, known[name]) == ALLOW, name


@BOTH
@pytest.mark.parametrize("family", range(46))
def test_only_internet_and_netlink_sockets(machine, family):
    may = {2, 10, 16}
    expected = ALLOW if family in may else EPERM
    assert verdict(machine, ARCHITECTURES[machine].socket, family, 1) == expected
    # The kernel reads an int: what stands above its 32 bits changes nothing.
    assert verdict(machine, ARCHITECTURES[machine].socket, family | 1 << 40, 1) == expected


@BOTH
def test_new_user_namespaces_are_refused(machine):
    table = ARCHITECTURES[machine]
    assert verdict(machine, table.clone, 0x10000000 | 17) == EPERM
    assert verdict(machine, table.clone, 17) == ALLOW
    assert verdict(machine, table.clone3) == ENOSYS


@BOTH
def test_nothing_types_into_a_terminal(machine):
    table = ARCHITECTURES[machine]
    for request in (0x5412, 0x541C):
        assert verdict(machine, table.ioctl, 0, request) == EPERM
        assert verdict(machine, table.ioctl, 0, request | 1 << 32) == EPERM
    assert verdict(machine, table.ioctl, 0, 0x5401) == ALLOW


@BOTH
def test_no_file_gets_a_set_id_bit(machine):
    known, table = numbers(machine), ARCHITECTURES[machine]
    for name, (own, mode, flags) in seccomp.MODE_CALLS.items():
        number = own[table.column]
        if number is None:
            assert name not in known
            continue
        assert number == known[name], name
        for bits in (0o4755, 0o2755, 0o106755, 0o4000 | 1 << 40):
            arguments = [0] * 4
            arguments[mode] = bits
            if flags is not None:
                # What stands in the mode's place means nothing where no file is made.
                assert verdict(machine, number, *arguments) == ALLOW, name
                for makes in (0o100, 0o20200000):
                    arguments[flags] = makes
                    assert verdict(machine, number, *arguments) == EPERM, name
            else:
                assert verdict(machine, number, *arguments) == EPERM, name
        arguments = [0o100] * 4
        arguments[mode] = 0o1755
        assert verdict(machine, number, *arguments) == ALLOW, name
    for name, number in seccomp.NO_SUCH_CALLS.items():
        assert known.get(name, number) == number
        assert verdict(machine, number) == ENOSYS


@BOTH
def test_foreign_code_is_killed(machine):
    for audit in (0x40000003, 0x40000028, 0):  # i386, arm, none
        assert verdict(machine, 0, audit=audit) == KILL_PROCESS


def test_the_second_numbering_of_x86_does_not_exist():
    assert verdict("x86_64", 0x40000000 | 41, 1) == ENOSYS
    assert verdict("x86_64", 0x40000000 | 101) == ENOSYS
