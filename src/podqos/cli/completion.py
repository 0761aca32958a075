"""Completion for three shells, each from the same grammar: commands, options, known values, files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podqos.cli.grammar import Argument, Grammar, Values

_PROGRAMS = "podqos kubectl-podqos"

# ---- bash --------------------------------------------------------------------------------------------------------

_BASH = """# bash completion for podqos: source <(podqos completion bash)
_podqos() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path="" words="" options="" index
    COMPREPLY=()
    # --option=value arrives as three words.
    if [[ $cur == "=" ]]; then
        cur=""
    elif [[ $prev == "=" ]]; then
        prev=${COMP_WORDS[COMP_CWORD-2]}
    fi
    for ((index = 1; index < COMP_CWORD; index++)); do
        case "$path ${COMP_WORDS[index]}" in
%(paths)s
        esac
    done
    case "$path $prev" in
%(values)s
    esac
    case "$path" in
%(commands)s
    esac
    [[ $cur == -* ]] && words=$options
    # Without words, file names are completed (-o default).
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _podqos %(programs)s
"""


def bash(commands: Mapping[str, Grammar]) -> str:
    """Return the script for bash."""
    everything = dict(_paths(commands))
    paths = "\n".join(
        f'            "{path.rpartition(" ")[0]} {grammar.name}") path="{path}" ;;'
        for path, grammar in everything.items()
    )
    values: dict[str, list[str]] = {}
    for path, command in everything.items():
        for option in command.options:
            values.setdefault(_bash_value(option), []).extend(f'"{path} {name}"' for name in option.names)
    values.pop("", None)
    cases = [f"        {'|'.join(names)})\n            {done} ;;" for done, names in values.items()]
    top = f'        "") ((COMP_CWORD == 1)) && words="{" ".join(commands)}" options="-h --help --version" ;;'
    below = [
        f'        "{path}") words="{_words(grammar)}" options="{_option_names(grammar)}" ;;'
        for path, grammar in everything.items()
    ]
    return _BASH % {
        "paths": paths,
        "values": "\n".join(cases),
        "commands": "\n".join([top, *below]),
        "programs": _PROGRAMS,
    }


def _bash_value(option: Argument) -> str:
    match option.values:
        case Values.WORDS:
            return f'COMPREPLY=($(compgen -W "{" ".join(option.words)}" -- "$cur")); return'
        case Values.FILES:
            return "return"
        case Values.ANYTHING:
            return "compopt +o default 2>/dev/null; return"
        case _:
            return ""


def _paths(commands: Mapping[str, Grammar], above: str = "") -> Iterator[tuple[str, Grammar]]:
    """Yield every command and subcommand with the words that lead to it."""
    for command in commands.values():
        path = f"{above} {command.name}".strip()
        yield path, command
        yield from _paths({below.name: below for below in command.below}, path)


def _words(command: Grammar) -> str:
    """Return the known words that may come next."""
    return " ".join(
        [
            *(grammar.name for grammar in command.below),
            *(word for positional in command.positionals for word in positional.words),
        ]
    )


def _option_names(command: Grammar) -> str:
    return " ".join(name for option in command.options for name in option.names)


# ---- zsh ---------------------------------------------------------------------------------------------------------

_ZSH = """#compdef %(programs)s
# zsh completion for podqos: podqos completion zsh > "${fpath[1]}/_podqos"
_podqos() {
    local curcontext=$curcontext state line
    typeset -A opt_args
%(body)s
}
if [[ ${funcstack[1]} == _podqos ]]; then
    _podqos "$@"
else
    compdef _podqos %(programs)s
fi
"""


def zsh(commands: Mapping[str, Grammar]) -> str:
    """Return the script for zsh."""
    top = ["'(- *)'{-h,--help}'[show the commands]'", "'(- *)--version[show the version]'"]
    return _ZSH % {"body": "\n".join(_zsh_choice(commands, top, "    ")), "programs": _PROGRAMS}


def _zsh_choice(commands: Mapping[str, Grammar], options: list[str], margin: str) -> Iterator[str]:
    """Yield the completion of a command's name, and then of its arguments."""
    yield f"{margin}_arguments -C {' '.join(options)} '1: :->command' '*:: :->argument'"
    yield f"{margin}case $state in"
    yield f"{margin}command)"
    described = (_quoted(f"{name}:{command.summary}") for name, command in commands.items())
    yield f"{margin}    local -a names=({' '.join(described)})"
    yield f"{margin}    _describe -t commands command names ;;"
    yield f"{margin}argument)"
    yield f"{margin}    case $words[1] in"
    for name, command in commands.items():
        yield f"{margin}    {name})"
        specs = [spec for option in command.options for spec in _zsh_option(option)]
        if command.below:
            yield from _zsh_choice({below.name: below for below in command.below}, specs, f"{margin}        ")
        else:
            specs += [_zsh_positional(positional) for positional in command.positionals]
            yield f"{margin}        _arguments -s {' '.join(specs)}"
        yield f"{margin}        ;;"
    yield f"{margin}    esac ;;"
    yield f"{margin}esac"


def _zsh_option(option: Argument) -> Iterator[str]:
    others = "*" if option.is_repeated else f"({' '.join(option.names)})"
    for name in option.names:
        takes = f":{_zsh_text(option.value)}:{_zsh_values(option)}" if option.value else ""
        equals = "=" if takes and name.startswith("--") else ""
        yield _quoted(f"{others}{name}{equals}[{_zsh_text(option.about)}]{takes}")


def _zsh_positional(positional: Argument) -> str:
    many = "*" if positional.is_repeated else ""
    return _quoted(f"{many}:{_zsh_text(positional.value)}:{_zsh_values(positional)}")


def _zsh_values(argument: Argument) -> str:
    match argument.values:
        case Values.WORDS if argument.value == "SCENARIO":
            return f"{{ compadd -- {' '.join(argument.words)}; _files }}"
        case Values.WORDS:
            return f"({' '.join(argument.words)})"
        case Values.FILES:
            return "_files"
        case _:
            return " "


def _zsh_text(text: str) -> str:
    for special in ("\\", "[", "]", ":"):
        text = text.replace(special, f"\\{special}")
    return text


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# ---- fish --------------------------------------------------------------------------------------------------------

_FISH = """# fish completion for podqos: podqos completion fish > ~/.config/fish/completions/podqos.fish
function __podqos_at --description 'whether the line begins with these words; last: and has no others'
    set -l words (commandline -opc)[2..-1]
    set -l path (string split -n ' ' -- $argv[1])
    test "$argv[2]" != last; or test (count $words) -eq (count $path); or return 1
    for index in (seq (count $path))
        test "$words[$index]" = "$path[$index]"; or return 1
    end
end
complete -c podqos -f
"""


def fish(commands: Mapping[str, Grammar]) -> str:
    """Return the script for fish."""
    lines = [
        *_fish_commands("", commands),
        "complete -c podqos -n '__podqos_at \"\" last' -l version -d 'show the version'",
        "complete -c podqos -n '__podqos_at \"\" last' -s h -l help -d 'show the commands'",
    ]
    for path, command in _paths(commands):
        lines += _fish_commands(path, {below.name: below for below in command.below})
        at = f"complete -c podqos -n '__podqos_at \"{path}\"{' last' if command.below else ''}'"
        for option in command.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            lines.append(f"{at} {names}{_fish_values(option)} -d {_fish_quoted(option.about)}")
        for positional in command.positionals:
            if positional.words:
                lines.append(f"{at} -a {_fish_quoted(' '.join(positional.words))}")
            if positional.values is Values.FILES or positional.value == "SCENARIO":
                lines.append(f"{at} -F")
    return _FISH + "".join(f"{line}\n" for line in lines)


def _fish_commands(path: str, commands: Mapping[str, Grammar]) -> Iterator[str]:
    for name, command in commands.items():
        yield f"complete -c podqos -n '__podqos_at \"{path}\" last' -a {name} -d {_fish_quoted(command.summary)}"


def _fish_values(option: Argument) -> str:
    match option.values:
        case Values.WORDS:
            return f" -x -a {_fish_quoted(' '.join(option.words))}"
        case Values.FILES:
            return " -r -F"
        case Values.ANYTHING:
            return " -x"
        case _:
            return ""


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
