"""The package as a user gets it: names, layers, what a plain install holds."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import minicpm5_mac

ROOT = Path(__file__).parents[1]
TOP_LEVEL = {
    *("pyproject.toml", "README.md", "minicpm5_mac", "mlx_kernels", "assets", "tests"),
    *("packaging", "LICENSE", "CHANGELOG.md", ".ci", ".gitignore"),
}


def tracked(*arguments: str) -> list[str]:
    done = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_the_top_level_is_what_was_asked_for():
    assert {name.split("/")[0] for name in tracked()} <= TOP_LEVEL


def test_python_dash_m_is_the_same_command():
    done = subprocess.run(
        [sys.executable, "-m", "minicpm5_mac", "--version"], capture_output=True, text=True
    )
    assert done.stdout == f"minicpm5-mac {minicpm5_mac.__version__}\n"


def test_every_data_file_of_the_packages_is_in_the_wheel(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(ROOT)],
        check=True,
    )
    (wheel,) = tmp_path.glob("minicpm5_mac-*.whl")
    import zipfile

    names = set(zipfile.ZipFile(wheel).namelist())
    for name in tracked("minicpm5_mac", "mlx_kernels"):
        assert name in names
    for name in tracked("assets"):
        assert f"minicpm5_mac/{name}" in names


def test_mlx_comes_with_the_right_backend_for_each_system():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    mlx = [
        d for d in project["dependencies"] if d.split(";")[0].strip().startswith(("mlx>", "mlx["))
    ]
    assert any("darwin" in d and "[cpu]" not in d for d in mlx)
    assert any("linux" in d and "mlx[cpu]" in d for d in mlx)


def test_the_readmes_table_of_keys_is_made_from_the_keys():
    from minicpm5_mac.configuration.table import markdown_table

    assert markdown_table().strip() in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readmes_commands_are_those_that_ci_and_users_run():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command = ".venv/bin/pip install --quiet '.[test]' && .venv/bin/pytest"
    assert command in readme
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
