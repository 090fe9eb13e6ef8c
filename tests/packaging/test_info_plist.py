"""Info.plist says what macOS must know, and nothing of the machine that built the app."""

from __future__ import annotations

import plistlib

import pytest
from info_plist import bundle_version, info_plist, without_build_machine

import minicpm5_mac


def test_what_it_says() -> None:
    plist = plistlib.loads(plistlib.dumps(info_plist()))
    assert plist["CFBundleShortVersionString"] == minicpm5_mac.__version__
    assert plist["LSMinimumSystemVersion"] == "14.0"
    assert plist["LSArchitecturePriority"] == ["arm64"]
    assert plist["NSHighResolutionCapable"] is True
    assert plist["LSMultipleInstancesProhibited"] is True
    assert plist["NSAppTransportSecurity"] == {"NSAllowsLocalNetworking": True}
    assert "©" in plist["NSHumanReadableCopyright"]
    assert set(plist["CFBundleIdentifier"]) <= set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"
    )


@pytest.mark.parametrize(
    ("version", "bundle"),
    [("0.1.0", "0.1.0"), ("1.2", "1.2"), ("0.2.0rc1", "0.2.0"), ("1.2.3.dev4+x", "1.2.3")],
)
def test_a_bundle_version_is_at_most_three_numbers(version: str, bundle: str) -> None:
    assert bundle_version(version) == bundle


def test_a_version_without_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="dev"):
        bundle_version("dev")


def test_the_build_machine_is_left_out_and_the_own_python_stays() -> None:
    inside = "@executable_path/../Frameworks/Python.framework/Versions/3.12/Python"
    plist = without_build_machine(
        {
            "CFBundleName": "MiniCPM5",
            "PythonInfoDict": {"PythonExecutable": "/Users/somebody/build/bin/python"},
            "PyRuntimeLocations": [inside, "/Library/Frameworks/Python.framework/Python", "~/P"],
        }
    )
    assert plist == {"CFBundleName": "MiniCPM5", "PyRuntimeLocations": [inside]}
