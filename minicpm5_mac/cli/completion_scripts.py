"""The scripts themselves. Each finds the command from the words before the cursor by a table."""

from __future__ import annotations

from minicpm5_mac.cli.command_tree import Command, Option, children

PROGRAM = "minicpm5-mac"
_NAME = "_minicpm5_mac"

Tree = tuple[Command, ...]


def bash_script(tree: Tree) -> str:
    """For bash 3.2 (the one macOS has) and later."""
    values = "".join(
        f"    {_quote(f'{_at(c)}:{name}')})\n      {_bash_value(option)}\n      return ;;\n"
        for c, option, name in _valued(tree)
    )
    words = "".join(
        f"    {_quote(_at(c))}) words={_quote(' '.join(_all_words(tree, c)))} ;;\n" for c in tree
    )
    return f"""\
# bash completion for {PROGRAM}
{_NAME}() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" at="" words="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at ${{COMP_WORDS[i]}}" in
{_steps(tree, "      ")}\
    esac
  done
  COMPREPLY=()
  case "$at:${{COMP_WORDS[COMP_CWORD - 1]}}" in
{values}\
  esac
  case "$at" in
{words}\
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F {_NAME} {PROGRAM}
"""


def zsh_script(tree: Tree) -> str:
    """To be sourced after compinit, or kept as `_minicpm5-mac` in a folder of $fpath."""
    values = "".join(
        f"    {_quote(f'{_at(c)}:{name}')}) {_zsh_value(option)}; return ;;\n"
        for c, option, name in _valued(tree)
    )
    described = ""
    for c in tree:
        commands = [_zsh_described(child.path[-1], child.help) for child in children(tree, c)]
        commands += [_zsh_described(choice, "") for choice in c.choices]
        options = [_zsh_described(name, o.help) for o in c.options for name in o.names]
        described += (
            f"    {_quote(_at(c))})\n"
            f"      commands=({' '.join(commands)})\n"
            f"      options=({' '.join(options)}) ;;\n"
        )
    return f"""\
#compdef {PROGRAM}
{_NAME}() {{
  local at="" word
  local -a commands options
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case "$at $word" in
{_steps(tree, "      ")}\
    esac
  done
  case "$at:${{words[CURRENT-1]}}" in
{values}\
  esac
  case "$at" in
{described}\
  esac
  if [[ "${{words[CURRENT]}}" == -* ]]; then
    _describe -o option options
  elif (( $#commands )); then
    _describe command commands
  else
    _files
  fi
}}
if [[ "${{funcstack[1]}}" == "_{PROGRAM}" ]]; then
  {_NAME} "$@"
else
  compdef {_NAME} {PROGRAM}
fi
"""


def fish_script(tree: Tree) -> str:
    """For fish 3 and later."""
    lines: list[str] = []
    for c in tree:
        here = f"complete -c {PROGRAM} -n '_minicpm5_mac_at {_quote_inner(_at(c))}'"
        below = children(tree, c)
        if (below or c.choices) and not c.files:
            lines.append(f"{here} -f")
        lines += [f"{here} -a {child.path[-1]} -d {_fish(child.help)}" for child in below]
        lines += [f"{here} -a {_fish(choice)}" for choice in c.choices]
        lines += [f"{here} {_fish_option(option)}" for option in c.options]
    return f"""\
# fish completion for {PROGRAM}
function _minicpm5_mac_at
    set -l at ""
    for word in (commandline -opc)[2..-1]
        switch "$at $word"
{_fish_steps(tree)}\
        end
    end
    test "$at" = "$argv[1]"
end
{chr(10).join(lines)}
"""


def _at(command: Command) -> str:
    """The path as the scripts write it: each word behind a blank, empty for the program."""
    return "".join(f" {word}" for word in command.path)


def _steps(tree: Tree, indent: str) -> str:
    paths = [_at(c) for c in tree if c.path]
    return "".join(f"{indent}{_quote(path)}) at={_quote(path)} ;;\n" for path in paths)


def _fish_steps(tree: Tree) -> str:
    paths = [_at(c) for c in tree if c.path]
    return "".join(
        f"            case {_fish(path)}\n                set at {_fish(path)}\n" for path in paths
    )


def _all_words(tree: Tree, command: Command) -> list[str]:
    names = [name for option in command.options for name in option.names]
    return [*(child.path[-1] for child in children(tree, command)), *command.choices, *names]


def _valued(tree: Tree) -> list[tuple[Command, Option, str]]:
    return [(c, o, name) for c in tree for o in c.options if o.takes_value for name in o.names]


def _bash_value(option: Option) -> str:
    if option.choices:
        return f'COMPREPLY=($(compgen -W {_quote(" ".join(option.choices))} -- "$current"))'
    return ":"  # readline's own file names, by `-o default`


def _zsh_value(option: Option) -> str:
    if option.choices:
        return "compadd -- " + " ".join(_quote(choice) for choice in option.choices)
    return "_files" if option.files else "_message value"


def _zsh_described(word: str, text: str) -> str:
    escaped = word.replace(":", "\\:")
    return _quote(f"{escaped}:{text}" if text else escaped)


def _fish_option(option: Option) -> str:
    parts: list[str] = []
    for name in option.names:
        bare = name.lstrip("-")
        parts.append(f"-l {bare}" if name.startswith("--") else f"-s {bare}")
    if option.takes_value:
        parts.append("-r" if option.files else "-x")
    if option.choices:
        parts.append(f"-a {_fish(' '.join(option.choices))}")
    return " ".join([*parts, "-d", _fish(option.help)])


def _quote(text: str) -> str:
    escaped = text.replace("'", "'\\''")
    return f"'{escaped}'"


def _fish(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _quote_inner(text: str) -> str:
    return f'"{text}"'
