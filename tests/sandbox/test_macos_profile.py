"""The macOS profile against the rules, and every way to weaken it found out.

No Mac is needed: `sbpl_evaluator` decides under both readings of rule order and of case folding.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
from macos_rules import FORBIDDEN_OPERATIONS, FORBIDDEN_SERVICES, Place, differences
from sbpl_evaluator import Symbol, Tree, parse

from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox import macos
from minicpm5_mac.sandbox import policy as policy_module
from minicpm5_mac.sandbox.policy import Limits, Policy

PLACE = Place()


def build(patch: pytest.MonkeyPatch, **folders) -> Policy:
    """A policy of folders that exist on no disk."""
    patch.setattr(policy_module, "_granted", lambda path, what: path)
    programs = tuple(map(Path, PLACE.programs))
    for module in (policy_module, macos):
        patch.setattr(module, "program_folders", lambda: programs)
    settings = {"workspace": Path(PLACE.workspace), "read": (Path(PLACE.read),)}
    return Policy(**{**settings, "write": (Path(PLACE.write),), **folders})


@pytest.fixture(scope="module")
def forms() -> Iterator[Tree]:
    with pytest.MonkeyPatch.context() as patch:
        yield parse(macos.profile(build(patch), Path(PLACE.tmp)))


def test_the_profile_does_what_the_rules_say(forms):
    assert list(differences(forms, PLACE)) == []


def test_it_denies_by_default_and_has_no_other_deny(forms):
    assert [form for form in forms if form[0] == "deny"] == [["deny", "default"]]


def test_it_imports_nothing(forms):
    assert {form[0] for form in forms} == {"version", "allow", "deny"}


def test_the_second_back_end_differs_by_apples_rules_alone(monkeypatch):
    policy = build(monkeypatch)
    own = macos.profile(policy, Path(PLACE.tmp)).splitlines()
    with_system = macos.profile(policy, Path(PLACE.tmp), system_rules=True).splitlines()
    with_system.remove('(import "system.sb")')
    assert with_system == own


def mutants(forms: Tree) -> Iterator[tuple[str, Tree]]:
    """Every profile that is weaker in one place, with what was done."""
    yield from _without_exceptions(forms)
    yield from _wider_paths(forms)
    yield from _without_filters(forms)
    yield from _looser_values(forms)
    yield from _more_rules(forms)
    opened = copy.deepcopy(forms)
    opened[opened.index(["deny", "default"])] = [Symbol("allow"), Symbol("default")]
    yield "allow by default", opened


def _places(forms: Tree, head: str) -> Iterator[tuple[int, ...]]:
    """Where forms with this head are, as index paths."""

    def search(form: Tree, at: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        for index, item in enumerate(form):
            if isinstance(item, list):
                if item and item[0] == head:
                    yield (*at, index)
                yield from search(item, (*at, index))

    yield from search(forms, ())


def _at(forms: Tree, place: tuple[int, ...]) -> Tree:
    for index in place:
        forms = forms[index]
    return forms


def _changed(forms: Tree, place: tuple[int, ...], new: Tree | None) -> Tree:
    """A copy with the form at `place` replaced, or removed."""
    changed = copy.deepcopy(forms)
    parent = _at(changed, place[:-1])
    if new is None:
        del parent[place[-1]]
    else:
        parent[place[-1]] = new
    return changed


def _without_exceptions(forms: Tree) -> Iterator[tuple[str, Tree]]:
    for place in _places(forms, "require-not"):
        yield f"without {_at(forms, place)}"[:120], _changed(forms, place, None)


def _wider_paths(forms: Tree) -> Iterator[tuple[str, Tree]]:
    for head in ("subpath", "literal"):
        for place in _places(forms, head):
            if any(_at(forms, place[:n])[0] == "require-not" for n in range(1, len(place))):
                continue  # a wider exception is stricter
            (path,) = _at(forms, place)[1:]
            if head == "literal":
                new = [Symbol("subpath"), path]
                yield f"{path} as subpath", _changed(forms, place, new)
            elif path != "/":
                new = [Symbol("subpath"), str(PurePosixPath(path).parent)]
                yield f"above {path}", _changed(forms, place, new)


def _without_filters(forms: Tree) -> Iterator[tuple[str, Tree]]:
    for number, form in enumerate(forms):
        filters = [item for item in form if isinstance(item, list)]
        if form[0] == "allow" and filters:
            bare = [item for item in form if not isinstance(item, list)]
            yield f"unfiltered {bare}", _changed(forms, (number,), bare)
    for place in _places(forms, "require-all"):
        for index in range(1, len(_at(forms, place))):
            if _at(forms, (*place, index))[0] != "require-not":
                what = _at(forms, (*place, index))
                yield f"without {what}", _changed(forms, (*place, index), None)
    for number, form in enumerate(forms):
        if "file-read-metadata" in form:
            new = [Symbol("file-read*") if x == "file-read-metadata" else x for x in form]
            yield "folders above can be listed", _changed(forms, (number,), new)
        if "file-write-data" in form:
            new = [Symbol("file-write*") if x == "file-write-data" else x for x in form]
            yield "/dev/null can be replaced", _changed(forms, (number,), new)


def _looser_values(forms: Tree) -> Iterator[tuple[str, Tree]]:
    for place in _places(forms, "target"):
        for other in ("others", "children", "self"):
            wider = [Symbol("require-any"), _at(forms, place), [Symbol("target"), Symbol(other)]]
            yield f"target {other}", _changed(forms, place, wider)
    for place in _places(forms, "global-name"):
        new = [Symbol("global-name-prefix"), "com.apple."]
        yield "services by prefix", _changed(forms, place, new)
    for head in ("sysctl-name", "sysctl-name-prefix"):
        for place in _places(forms, head):
            prefix = _at(forms, place)[1].split(".")[0] + "."
            new = [Symbol("sysctl-name-prefix"), prefix]
            yield f"sysctls by prefix {prefix}", _changed(forms, place, new)
    for place in _places(forms, "ipc-posix-name-regex"):
        for pattern in ("^/", "(mp|loky)-", ""):
            new = [Symbol("ipc-posix-name-regex"), pattern]
            yield f"semaphores {pattern!r}", _changed(forms, place, new)
    for place in _places(forms, "regex"):
        for pattern in _weaker_patterns(_at(forms, place)[1]):
            yield f"pattern {pattern}"[:160], _changed(forms, place, [Symbol("regex"), pattern])


def _weaker_patterns(pattern: str) -> Iterator[str]:
    if "(" in pattern:
        start, end = pattern.index("("), pattern.index(")")
        names = pattern[start + 1 : end].split("|")
        for gone in names:
            left = "|".join(name for name in names if name != gone)
            yield pattern[: start + 1] + left + pattern[end:]
        import re

        for letter in re.finditer(r"\[([a-z])[A-Z]\]", pattern):
            yield pattern[: letter.start()] + letter[1] + pattern[letter.end() :]
        yield pattern.replace("($|/)", "$")
        yield pattern.replace("($|/)", "/")
        yield pattern.replace("/[^ -~]*", "/")
        yield "^" + pattern
    else:
        yield pattern.replace("[^/]*", "")
        yield pattern + "$"


def _more_rules(forms: Tree) -> Iterator[tuple[str, Tree]]:
    added = [f'(allow mach-lookup (global-name "{name}"))' for name in FORBIDDEN_SERVICES]
    added += [f"(allow {operation})" for operation in FORBIDDEN_OPERATIONS]
    added += [
        *("(allow network*)", "(allow mach*)", "(allow file*)", "(allow file-read*)"),
        *("(allow process*)", "(allow ipc*)", "(allow sysctl*)", "(allow system*)"),
        *('(allow network-outbound (remote ip "localhost:*"))', "(allow mach-lookup)"),
        *('(allow network-outbound (remote unix-socket))', "(allow signal)"),
        '(allow file-read* file-write* (literal "/dev/tty"))',
        '(allow file-read* (subpath "/Users"))',
        '(allow file-read* (subpath "/private/var/folders"))',
        '(allow file-read* (subpath "/Library"))',
        '(allow file-write* (subpath "/private/tmp"))',
        f'(allow file-write* (subpath "{PLACE.workspace}/.git"))',
        f'(allow file-write* (subpath "{PLACE.read}"))',
    ]  # fmt: skip
    for rule in added:
        # Both ends: by one reading of rule order it matters where a rule stands.
        yield f"first {rule}", [*parse(rule), *copy.deepcopy(forms)]
        yield f"last {rule}", [*copy.deepcopy(forms), *parse(rule)]


def test_every_weaker_profile_is_found_out(forms):
    unnoticed, tried = [], 0
    for what, weaker in mutants(forms):
        tried += 1
        if next(differences(weaker, PLACE, touched(forms, weaker)), None) is None:
            unnoticed.append(what)
    assert unnoticed == []
    assert tried > 300


def touched(forms: Tree, weaker: Tree) -> set[str] | None:
    """The operations of the rules that differ: no other request can be decided differently."""
    differing = [form for form in (*forms, *weaker) if (form in forms) != (form in weaker)]
    operations = {item for form in differing for item in form[1:] if isinstance(item, Symbol)}
    return None if "default" in operations else operations


def test_a_read_only_policy_writes_its_run_folder_alone(monkeypatch):
    policy = build(monkeypatch, writable=False, write=())
    text = macos.profile(policy, Path(PLACE.tmp))
    writes = [form for form in parse(text) if "file-write*" in form]
    assert writes == [["allow", "file-write*", ["subpath", PLACE.tmp]]]


@pytest.mark.parametrize(
    "name", ['quo"te', "back\\slash", ')(allow default)("', "#(", ";comment", "größe 漢字", "a b"]
)
def test_a_folders_name_never_becomes_a_rule(monkeypatch, name):
    place = Place(workspace=f"/Users/me/{name}", pinned=f"/Users/me/{name}/tools/venv")
    policy = build(monkeypatch, workspace=Path(place.workspace))
    for module in (policy_module, macos):
        monkeypatch.setattr(module, "program_folders", lambda: tuple(map(Path, place.programs)))
    text = macos.profile(policy, Path(PLACE.tmp))
    assert list(differences(parse(text), place)) == []


@pytest.mark.parametrize("name", ["new\nline", "esc\x1b", "del\x7f", "long" * 300])
def test_a_name_no_profile_can_hold_is_refused(monkeypatch, name):
    policy = build(monkeypatch, workspace=Path("/Users/me") / name)
    with pytest.raises(Failure):
        macos.profile(policy, Path(PLACE.tmp))


def test_regular_expressions_are_ascii_and_hold_no_path(forms):
    patterns = {form[1] for p in _places(forms, "regex") if (form := _at(forms, p))}
    assert len(patterns) == 2
    for pattern in patterns:
        assert pattern.isascii()
        assert "Users" not in pattern


def test_the_command_line_clears_the_environment_and_sets_limits(monkeypatch):
    policy = build(monkeypatch, limits=Limits(wall_seconds=9, open_files=77))
    monkeypatch.setattr(macos, "SANDBOX_EXEC", "/bin/sh")
    monkeypatch.setenv("API_KEY", "sk-secret")
    wrapped = macos.wrap(policy, ("make", "a b"), Path(PLACE.tmp))
    assert wrapped.argv[:2] == ("/bin/sh", "-p")
    assert wrapped.argv[3:6] == ("--", "/usr/bin/env", "-i")
    assert wrapped.argv[-3:] == (PLACE.workspace, "make", "a b")
    assert "ulimit -n 77" in wrapped.argv[-4]
    assert "ulimit -t 10" in wrapped.argv[-4]
    assert not [word for word in wrapped.argv if "sk-secret" in word]
    assert f"HOME={PLACE.tmp}/home" in wrapped.argv
    assert f"TMPPREFIX={PLACE.tmp}/zsh" in wrapped.argv
    assert wrapped.environment == {"PATH": "/usr/bin:/bin"}


def test_without_sandbox_exec_there_are_no_tools(monkeypatch):
    policy = build(monkeypatch)
    monkeypatch.setattr(macos, "SANDBOX_EXEC", "/nowhere/sandbox-exec")
    with pytest.raises(Failure, match="missing"):
        macos.wrap(policy, ("true",), Path(PLACE.tmp))
