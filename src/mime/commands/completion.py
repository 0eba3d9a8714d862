"""What a shell offers after the Tab key: names of scenarios, nodes, motors and robots too."""

from typing import get_args

import mime

_WRAPPED = """
_mime_names() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" names=""
  if [[ $COMP_CWORD -eq 2 && "$cur" != -* ]]; then
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
  fi
  if [[ -n "$names" ]]; then
    COMPREPLY=($(compgen -W "$names" -- "$cur"))
    [[ "${{COMP_WORDS[1]}}" == list ]] || COMPREPLY+=($(compgen -f -- "$cur"))
  else
    _tyro_mime
  fi
}}
complete -o filenames -F _mime_names mime
"""
_CALL = '_tyro_mime "$@"'


def names_by_command() -> dict[str, list[str]]:
    """The names that the first argument of a command can be. A shell may ask when it starts: they
    are read off tables, and nothing is loaded for them.
    """
    from mime.commands.listing import What
    from mime.models import model_names
    from mime.nodes.actuation.printed_figures import ROWS
    from mime.scenarios.bundled import bundled_scenarios

    scenarios = list(bundled_scenarios())
    nodes = [name for name in dir(mime) if name.endswith("Node") and name != "Node"]
    return {
        "run": scenarios,
        "graph": scenarios,
        "view": scenarios,
        "list": list(get_args(What)),
        "show": [*nodes, *model_names(), *ROWS, *scenarios],
    }


def with_names(shell: str, script: str) -> str:
    """A completion script that knows commands and options, and these names as well."""
    found = {command: " ".join(names) for command, names in names_by_command().items()}
    if shell == "bash":
        cases = "\n".join(f'      {command}) names="{n}" ;;' for command, n in found.items())
        return script + _WRAPPED.format(cases=cases)
    if shell == "fish":
        lines = [
            f"complete --command mime --condition '__fish_seen_subcommand_from {command}' "
            f"--force-files --arguments '{names}'"
            for command, names in found.items()
        ]
        return "\n".join([script, *lines, ""])
    cases = "\n".join(f"    {c}) compadd -- {n}; _files; return ;;" for c, n in found.items())
    offered = 'if (( CURRENT == 3 )) && [[ "$words[3]" != -* ]]; then\n  case "$words[2]" in\n'
    before, _, after = script.rpartition(_CALL)
    return f"{before}{offered}{cases}\n  esac\nfi\n{_CALL}{after}"
