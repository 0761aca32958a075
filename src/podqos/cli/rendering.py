"""Which kustomizations and charts a command renders, and with what: the shared options and how they are read."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence

from podqos.cli.options import Parser, add_list_option, add_value_option, duration_option
from podqos.errors import InvalidOption
from podqos.reading.files import Rendering


def add_rendering_options(parser: Parser, about: str) -> None:
    """Declare ``--render``, which does what ``about`` says, and what renderers are given."""
    parser.add_argument("--render", action="store_true", help=f"{about} (default: skip them)")
    add_list_option(parser, "--values", "FILE", "values for the charts that are rendered, as in helm template")
    add_list_option(parser, "--set", "KEY=VALUE", "one value for the charts that are rendered, as in helm template")
    about = "more arguments for helm template, such as '--namespace web --include-crds'"
    add_list_option(parser, "--helm-args", "ARGUMENTS", about)
    about = "more arguments for kubectl kustomize or kustomize build, such as --enable-helm"
    add_list_option(parser, "--kustomize-args", "ARGUMENTS", about)
    about = "how long one kustomization or chart may take"
    add_value_option(parser, "--render-timeout", duration_option, about, "DURATION", default="1m")


def rendering_of(arguments: argparse.Namespace) -> Rendering:
    """Return what a command renders, and with what."""
    directories = tuple(getattr(arguments, "kustomize", ()))
    stated = {
        "--values": arguments.values,
        "--set": arguments.set,
        "--helm-args": arguments.helm_args,
        "--kustomize-args": arguments.kustomize_args,
    }
    given = [option for option, value in stated.items() if value]
    if given and not (arguments.render or directories):
        raise InvalidOption("nothing is rendered", where=given[0], fix="add --render")
    return Rendering(
        arguments.render,
        directories,
        helm=(*_values(arguments.values), *_set(arguments.set), *_words(arguments.helm_args, "--helm-args")),
        kustomize=_words(arguments.kustomize_args, "--kustomize-args"),
        timeout_s=arguments.render_timeout / 1_000_000,
    )


def _values(files: Sequence[str]) -> list[str]:
    for file in files:
        if "://" not in file and not os.path.isfile(file):
            raise InvalidOption("no such file", where=f"--values {file}", fix="check the path")
    return [f"--values={file}" for file in files]


def _set(texts: Sequence[str]) -> list[str]:
    for text in texts:
        if not text.partition("=")[1]:
            raise InvalidOption("not KEY=VALUE", where=f"--set {text}", fix="for example --set replicas=2")
    return [f"--set={text}" for text in texts]


def _words(texts: Sequence[str], option: str) -> tuple[str, ...]:
    try:
        return tuple(word for text in texts for word in shlex.split(text))
    except ValueError as error:
        raise InvalidOption(f"{error}".lower(), where=option, fix="quote it as in a shell") from None
