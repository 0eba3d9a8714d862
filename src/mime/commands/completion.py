"""What a shell offers after the Tab key: commands, their options, and what these may be.

tyro knows the options and has scripts of its own; but those start Python at every Tab, offer no
names, and in zsh no values. The scripts here are tables: nothing is started when a key is pressed.
"""

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

import mime

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True)
class Option:
    """An option of a command. `choices` and `files` say what its value may be."""

    flag: str
    words: str
    takes_value: bool
    choices: tuple[str, ...] = ()
    files: bool = False


@dataclass(frozen=True)
class Command:
    """What can follow a command: names or files as its first argument, and options anywhere."""

    name: str
    words: str
    options: tuple[Option, ...]
    names: tuple[str, ...] = field(default=())
    files: bool = False


def names_by_command() -> dict[str, list[str]]:
    """The names that the first argument of a command can be. A shell may ask when it starts: they
    are read off tables, and nothing is loaded for them.
    """
    from mime.commands.listing import What
    from mime.models import model_names
    from mime.nodes.actuation.printed_figures import ROWS, SERVO_ROWS
    from mime.scenarios.bundled import bundled_scenarios

    scenarios = list(bundled_scenarios())
    nodes = [name for name in dir(mime) if name.endswith("Node") and name != "Node"]
    return {
        "run": scenarios,
        "graph": scenarios,
        "view": [*scenarios, *(f"model:{name}" for name in model_names())],
        "list": list(get_args(What)),
        "show": [*nodes, *model_names(), *ROWS, *SERVO_ROWS, *scenarios],
        "completion": list(SHELLS),
    }


_NO_FILES = ["list", "demo", "verify", "new-scenario", "new-node", "completion", "cache", "version"]
"""Commands whose first argument can be no file that is there."""


def script(shell: str, tyros: str, functions: Mapping[str, Callable[..., Any]]) -> str:
    """The script for a shell, from the one that tyro prints and the functions of the commands."""
    writers = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    return writers[shell](_commands(tyros, functions))


def _commands(tyros: str, functions: Mapping[str, Callable[..., Any]]) -> list[Command]:
    """The commands; their options stand in tyro's script as a table."""
    table = re.search(r"^COMPLETION_SPEC = (\{.*\})$", tyros, re.MULTILINE)
    if table is None:
        raise RuntimeError("tyro's completion script has no table of options; is tyro another one?")
    known, names = ast.literal_eval(table[1])["subcommands"], names_by_command()
    found = []
    for name, function in functions.items():
        options = tuple(
            _option(flag, entry)
            for entry in known[name]["options"]
            for flag in entry["flags"]
            if flag.startswith("--")
        )
        words = (function.__doc__ or "").partition("\n")[0].partition(": ")[0].rstrip(".")
        offered = tuple(names.get(name, ()))
        found.append(Command(name, words, options, offered, name not in _NO_FILES))
    return found


def _option(flag: str, entry: Mapping[str, Any]) -> Option:
    kind, separator, words = entry["description"].partition(" • ")
    words = re.sub(r" \((default: .*|required|repeatable)\)$", "", words if separator else kind)
    choices = tuple(map(str, entry.get("choices", ())))
    return Option(flag, words, entry["type"] != "flag", choices, kind in ("DIR", "FILE"))


def _bash(commands: list[Command]) -> str:
    flags = "\n".join(
        f"    {c.name}) options={_word(' '.join(o.flag for o in c.options))} ;;" for c in commands
    )
    first = "\n".join(
        f"      {c.name}) offered={_word(' '.join(c.names))}; files={_yes(c.files)} ;;"
        for c in commands
        if c.names or c.files
    )
    values = "\n".join(
        f"    {_word(f'{c.name} {o.flag}')}) offered={_word(' '.join(o.choices))}; "
        f"files={_yes(o.files)} ;;"
        for c in commands
        for o in c.options
        if o.takes_value
    )
    return _BASH.format(names=" ".join(c.name for c in commands), **_tables(flags, first, values))


def _zsh(commands: list[Command]) -> str:
    every = "\n".join(f"    {_described(c.name, c.words)}" for c in commands)
    flags = "\n".join(
        f"  {c.name}) offered=({' '.join(_described(o.flag, o.words) for o in c.options)}) ;;"
        for c in commands
    )
    first = "\n".join(
        f"    {c.name}) {_zsh_offer(c.names, c.files)} ;;" for c in commands if c.names or c.files
    )
    values = "\n".join(
        f"  {_word(f'{c.name} {o.flag}')}) {_zsh_offer(o.choices, o.files)} ;;"
        for c in commands
        for o in c.options
        if o.takes_value
    )
    return _ZSH.format(names=every, **_tables(flags, first, values))


def _zsh_offer(names: Iterable[str], files: bool) -> str:
    parts = [f"compadd -- {' '.join(names)}"] if names else []
    return "; ".join([*parts, *(["_files"] if files else []), "return"])


def _described(name: str, words: str) -> str:
    return _word(f"{name}:{words}")  # only the first colon ends the name


def _fish(commands: list[Command]) -> str:
    lines = []
    for c in commands:
        lines.append(f"complete -c mime -n __mime_none -a {c.name} -d {_fish_word(c.words)}")
        first, within = f"-n '__mime_first {c.name}'", f"-n '__mime_within {c.name}'"
        if c.names:
            lines.append(f"complete -c mime {first} -a {_fish_word(' '.join(c.names))}")
        if c.files:
            lines.append(f"complete -c mime {first} -F")
        for o in c.options:
            value = "-r -F" if o.files else "-x" if o.takes_value else ""
            offered = f"-a {_fish_word(' '.join(o.choices))}" if o.choices else ""
            words = [within, f"-l {o.flag[2:]}", value, offered, f"-d {_fish_word(o.words)}"]
            lines.append("complete -c mime " + " ".join(filter(None, words)))
    return _FISH + "\n".join([*lines, ""])


def _tables(flags: str, first: str, values: str) -> dict[str, str]:
    return {"flags": flags, "first": first, "values": values}


def _yes(flag: bool) -> str:
    return "yes" if flag else "''"


def _word(text: str) -> str:
    """One word of bash or zsh."""
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_word(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_BASH = """\
# What `mime completion bash` printed.
_mime() {{
  # The words as they were typed: bash splits its own at colons, as in model:NAME.
  local line="${{COMP_LINE:0:COMP_POINT}}" typed options="" offered="" files=""
  read -ra typed <<< "$line"
  [[ "$line" == *[[:space:]] ]] && typed+=("")
  local last=$((${{#typed[@]}} - 1))
  local current="${{typed[last]}}"
  case "${{typed[1]}}" in
{flags}
  esac
  case "${{typed[1]}} ${{typed[last-1]}}" in
{values}
    *) if ((last == 1)); then offered="{names} --help --version"
    elif [[ "$current" == -* ]] || ((last > 2)); then offered="$options"
    else case "${{typed[1]}}" in
{first}
      *) offered="$options" ;;
      esac
    fi ;;
  esac
  local IFS=$'\\n'
  COMPREPLY=($(IFS=' '; compgen -W "$offered" -- "$current"))
  if [[ -n "$files" ]]; then
    files=($(compgen -f -- "$current"))
    # Slashes after folders, and backslashes: names have colons, which need none.
    ((${{#files[@]}})) && compopt -o filenames 2> /dev/null
    COMPREPLY+=("${{files[@]}}")
  fi
  # Bash puts an answer in place of what follows the last colon.
  if [[ "$current" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then
    COMPREPLY=("${{COMPREPLY[@]#"${{current%"${{current##*:}}"}}"}}")
  fi
}}
complete -F _mime mime
"""

_ZSH = """\
#compdef mime
# What `mime completion zsh` printed.
local -a offered
if (( CURRENT == 2 )); then
  offered=(
{names}
  )
  _describe command offered
  return
fi
case "$words[2] $words[CURRENT-1]" in
{values}
esac
if (( CURRENT == 3 )) && [[ "$PREFIX" != -* ]]; then
  case "$words[2]" in
{first}
  esac
fi
case "$words[2]" in
{flags}
esac
_describe option offered
"""

_FISH = """\
# What `mime completion fish` printed.
function __mime_none
    test (count (commandline -opc)) -eq 1
end
function __mime_within
    set -l typed (commandline -opc)
    test (count $typed) -gt 1; and test $typed[2] = $argv[1]
end
function __mime_first
    __mime_within $argv[1]; and test (count (commandline -opc)) -eq 2
end
complete -c mime -e
complete -c mime -f
"""
