"""Info.plist: what macOS has to know of the app."""

from __future__ import annotations

import re
from typing import Any

from environment import MACOS, REPOSITORY

IDENTIFIER = "org.minicpm5-mac.MiniCPM5"
# Words of py2app's template about the machine that built the app.
LEAKING = ("PythonInfoDict", "PyRuntimeLocations")


def package_version() -> str:
    """The version in minicpm5_mac/__init__.py, without importing it."""
    text = (REPOSITORY / "minicpm5_mac" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise ValueError("minicpm5_mac/__init__.py has no __version__")
    return found[1]


def bundle_version(version: str) -> str:
    """Three whole numbers, which is all that CFBundleVersion may be: 0.2.0rc1 → 0.2.0."""
    found = re.match(r"\d+(\.\d+){0,2}", version)
    if found is None:
        raise ValueError(f"a version begins with numbers, unlike {version!r}")
    return found[0]


def info_plist() -> dict[str, Any]:
    """Keys and values. Source: Apple's "Information Property List" reference."""
    version = package_version()
    return {
        "CFBundleIdentifier": IDENTIFIER,
        "CFBundleName": "MiniCPM5",
        "CFBundleDisplayName": "MiniCPM5",
        "CFBundleDevelopmentRegion": "en",
        "CFBundleIconFile": "icon.icns",
        "CFBundlePackageType": "APPL",
        "CFBundleShortVersionString": version,
        "CFBundleVersion": bundle_version(version),
        "LSApplicationCategoryType": "public.app-category.productivity",
        "LSMinimumSystemVersion": MACOS,
        "LSArchitecturePriority": ["arm64"],
        "LSRequiresNativeExecution": True,
        "LSMultipleInstancesProhibited": True,
        "NSHighResolutionCapable": True,
        "NSHumanReadableCopyright": "Copyright © 2026 the authors of minicpm5-mac. Apache-2.0.",
        # The window's page comes from 127.0.0.1 without TLS; nothing else may.
        "NSAppTransportSecurity": {"NSAllowsLocalNetworking": True},
    }


def without_build_machine(plist: dict[str, Any]) -> dict[str, Any]:
    """Without what leaks from it.

    The stub reads PyRuntimeLocations and looks nowhere else: the bundle's own stays.
    """
    kept = {key: value for key, value in plist.items() if key not in LEAKING}
    inside = [
        place
        for place in plist.get("PyRuntimeLocations", [])
        if place.startswith("@executable_path/")
    ]
    return {**kept, "PyRuntimeLocations": inside}
