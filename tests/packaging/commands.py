"""Holds every `okt …` command line of the documentation against docs/CLI.md: the command, the commands below it and the options
have to exist. Looked at are blocks in `bash`, lines of `text` blocks that begin with okt, and code inside of sentences.

Usage: commands.py
"""

import re
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/CLI.md"
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.S | re.M)
SPAN = re.compile(r"(?<!`)`(okt [^`]+)`(?!`)")
# The service starts them itself.
HIDDEN = ["okt parse-worker", "okt ocr-worker"]
# Commands that start another one.
WRAPPERS = {"docker", "sudo", "watch", "time", "exec"}


def reference():
    """Command -> (its options with whether each takes a value, whether it takes something that is no option)."""
    commands, inherited = {command: ({}, False) for command in HIDDEN}, {}
    for section in REFERENCE.read_text(encoding="utf-8").split("\n## ")[1:]:
        command = re.match(r"`([^`]+)`", section).group(1)
        above = command.rpartition(" ")[0]
        options, positional = dict(inherited.get(above, {})), False
        inherited[command] = dict(options)
        for names, said in re.findall(r"^\| `([^`]+)` \|(.*)\|$", section, re.M):
            for name in re.findall(r"(?:^|, )(--?[\w-]+)", names):
                options[name] = "<" in names
                if "(also of the commands below)" in said:
                    inherited[command][name] = options[name]
            positional |= names.startswith("<")
        commands[command] = options | {"--help": False, "--version": False, "-h": False, "-V": False}, positional
    return commands


def wrong(words, commands):
    command, words = "okt", iter(words)
    for word in words:
        options, positional = commands[command]
        parents = any(one.startswith(command + " ") for one in commands)
        if word == "--":
            return None
        if word.startswith("-") and word != "-":
            name, _, value = word.partition("=")
            if name not in options:
                return f"`{command}` has no option {name}"
            if options[name] and not value:
                next(words, None)
        elif parents and all(f"{command} {one}" in commands for one in word.split("|")):
            command = f"{command} {word.split('|')[0]}"
        elif parents and not positional:
            return f"`{command}` has no command {word}"
    return None


def in_script(text):
    for line in re.sub(r"\\\n", " ", text).splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError:
            # A line of a text between quotes.
            continue
        simple = [[]]
        for word in words:
            if set(word) <= set("();<>|&$"):
                simple.append([])
            else:
                simple[-1].append(word)
        for one in simple:
            while one and re.match(r"\w+=", one[0]):
                one = one[1:]
            if one and one[0] in WRAPPERS and "okt" in one:
                # The last one: a service or a unit may have the same name.
                one = one[len(one) - 1 - one[::-1].index("okt"):]
            if one[:1] == ["okt"] and len(one) > 1:
                yield one[1:]


def in_words(text):
    """How commands stand in sentences and overviews: with brackets around what may be left out, and words to choose from."""
    for one in re.split(r", (?=okt )", re.split(r" {2,}| #|…", text)[0]):
        words = re.sub(r"[\[\]]", " ", one).split()
        # `okt mcp: …` is what the command says.
        if words[:1] == ["okt"] and len(words) > 1 and not words[1].endswith(":"):
            yield words[1:]


def main():
    commands, found, troubles = reference(), 0, []
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(set((ROOT / "docs").rglob("*.md")) - {REFERENCE})]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        lines = []
        for language, block in BLOCK.findall(text):
            if language == "bash":
                lines += in_script(block)
            elif language == "text":
                lines += [words for line in block.splitlines() for words in in_words(line)]
        for span in SPAN.findall(BLOCK.sub("", text)):
            lines += in_words(" ".join(span.split()))
        for words in lines:
            found += 1
            trouble = wrong(words, commands)
            if trouble:
                troubles.append(f"{page.relative_to(ROOT)}: okt {' '.join(words)}: {trouble}")
    if troubles or found < 100:
        sys.exit("commands: " + "\n".join(troubles or [f"only {found} command lines were found"]))
    print(f"commands: {found} command lines of the documentation name commands and options that exist")


main()
