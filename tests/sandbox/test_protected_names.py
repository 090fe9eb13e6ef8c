"""Protected names are recognised in every spelling a disk that folds case takes for them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicpm5_mac.sandbox.protected import PROTECTED_NAMES, is_protected

NAMES = st.sampled_from(PROTECTED_NAMES)
# Characters outside of ASCII that fold to an ASCII letter: what APFS takes for that letter.
FOLDING = {
    chr(code).casefold(): chr(code)
    for code in range(128, 0x3000)
    if len(chr(code).casefold()) == 1 and chr(code).casefold().isascii()
}
IGNORED_BY_HFS = "\u200c\u200d\u200e\u200f\u202a\u202e\u206a\u206f\ufeff"


def test_the_folding_letters_are_known():
    assert FOLDING == {"s": "ſ", "k": "\u212a"}


@given(NAMES, st.lists(st.booleans(), min_size=30, max_size=30), st.text(max_size=5))
def test_any_case_at_any_depth_and_all_below(name, upper, rest):
    spelled = "".join(c.upper() if up else c for c, up in zip(name, upper, strict=False))
    below = rest.replace("/", "").replace("\0", "")
    assert is_protected(f"/w/{spelled}")
    assert is_protected(f"/w/deep/er/{spelled}/{below}")


@given(NAMES, st.data())
def test_letters_that_fold_to_ascii_are_seen_through(name, data):
    spelled = "".join(
        data.draw(st.sampled_from([c, FOLDING[c]])) if c in FOLDING else c for c in name
    )
    assert spelled.casefold() == name
    assert is_protected(f"/w/{spelled}")


@given(NAMES, st.integers(0, 20), st.sampled_from(IGNORED_BY_HFS))
def test_invisible_characters_are_seen_through(name, at, invisible):
    assert is_protected(f"/w/{name[:at]}{invisible}{name[at:]}")


@pytest.mark.parametrize(
    "path",
    [
        "/w/a.git",
        "/w/git",
        "/w/.github/workflows/x.yml",
        "/w/.gitignore",
        "/w/.gitattributes",
        "/w/.vscode-test",
        "/w/.env",
        "/w/profile",
        "/w/x.profile",
        "/w/résumé.txt",
        "/w/漢字.md",
        "/w/" + unicodedata.normalize("NFD", "é.txt"),
        "/w/ends in.",
        "/w/fam👨\u200d👩.png",
    ],
)
def test_other_names_are_not(path):
    assert not is_protected(path)
