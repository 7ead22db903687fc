# SPDX-License-Identifier: Apache-2.0
"""Reads a guide: its code blocks, the commands in them, and the calls of mete in its text.

The word after ``` says what a block is:
  sh         commands, which the test runs one after the other. `# exit 69` at the end of a command: it ends with that code
  console    commands that the test does not run; each such block has its reason in guides_test.py
  WORD FILE  a file of that name, which the test writes before it runs what follows: ```bash train.sh
  WORD       a listing or a part of a file, without commands: text, toml, yaml, python
"""
import dataclasses
import re
import subprocess

FENCE = re.compile(r"^( *)```(.*)$")
EXIT = re.compile(r"(?:^|\s)#\s*exit (\d+)\b")
# A call of mete: the verb, and everything up to the end of that command. A leading word may set a variable.
CALL = re.compile(r"(?:^|(?<=[\s(;&|`\"'$=]))mete (?P<verb>[a-z]+)(?P<rest>(?:[^|;&)\n`]|\\\n)*)")
COMMENT = re.compile(r"(?m)(?:^|\s)#\s.*$")
OPTION = re.compile(r"(?<![^\s\[(])(--?[a-zA-Z][\w-]*)")
SLURM = re.compile(r"(?:^|[;&|(]\s*|\$\()(?:srun|sbatch|squeue|scancel|sinfo|scontrol)\b", re.M)
COMMAND = re.compile(r"^\s*(?:\$ |(?:sudo )?(?:mete|meted|srun|sbatch|squeue|scancel|apt|systemctl|curl|docker|python) )")


@dataclasses.dataclass
class Block:
    line: int  # of its first line in the guide
    kind: str
    file: str
    text: str

    @property
    def first(self):
        """Its first line, without a comment: by this NOT_RUN names it."""
        return re.split(r"\s+# ", self.text.strip() + "\n")[0].splitlines()[0].strip()


@dataclasses.dataclass
class Call:
    """`mete VERB ...`, as far as it can be compared with --help."""
    verb: str
    word: str  # the first word after the verb, if it is no option: `status` of `mete daemon status`
    options: list
    text: str


class Mistake(Exception):
    pass


def blocks(text):
    """All code blocks. A block of indented lines is a mistake: it does not say what it is."""
    found, open_, before = [], None, ""
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if open_ is not None:
            if fence and not fence[2].strip():
                found.append(open_)
                open_ = None
            else:
                open_.text += line[min(indent, len(line) - len(line.lstrip())):] + "\n"
            before = ""
            continue
        if fence:
            kind, _, file = fence[2].strip().partition(" ")
            if not kind:
                raise Mistake(f"line {number}: the block does not say what it is: sh, console, text, ...")
            indent, open_ = len(fence[1]), Block(number + 1, kind, file.strip(), "")
        elif line.startswith("    ") and not before.strip():
            raise Mistake(f"line {number}: an indented block: write ```sh, ```console or ```text around it")
        before = line
    if open_ is not None:
        raise Mistake(f"line {open_.line}: the block has no end")
    return found


def whole(lines):
    """Whether bash can read these lines as they are: nothing is open, no here-document waits for its end."""
    if lines[-1].endswith("\\"):
        return False
    check = subprocess.run(["bash", "-n"], input="\n".join(lines) + "\n", capture_output=True, text=True)
    return check.returncode == 0 and not check.stderr


def commands(block):
    """[(line, text, exit code)] of a block of the kind sh: one command with its continuation lines each."""
    found, held, begin = [], [], 0
    for number, line in enumerate(block.text.splitlines()):
        if not held and (not line.strip() or line.lstrip().startswith("#")):
            continue
        if not held:
            begin = block.line + number
        held.append(line)
        if whole(held):
            code = EXIT.search(line)
            found.append((begin, "\n".join(held), int(code[1]) if code else 0))
            held = []
    if held:
        raise Mistake(f"line {begin}: the command has no end")
    return found


def calls(text):
    """Every call of mete in a text."""
    found = []
    for match in CALL.finditer(COMMENT.sub("", text)):
        rest = re.split(r"(?:^|\s)--(?=\s|$)", match["rest"].replace("\\\n", " "), maxsplit=1)[0]
        words = rest.split()
        word = words[0] if words and re.fullmatch(r"[a-z]+", words[0]) else ""
        found.append(Call(match["verb"], word, OPTION.findall(without_quotes(rest)), match[0].strip()))
    return found


def without_quotes(text):
    return re.sub(r"'[^']*'|\"[^\"]*\"", "''", text)


def inline_calls(text):
    """Calls in the code spans of the text around the blocks: in sentences and tables."""
    outside, inside = [], False
    for line in text.splitlines():
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            outside.append(line)
    spans = re.findall(r"(`+)(.+?)\1", "\n".join(outside), re.S)
    return [call for _, span in spans for call in calls(" ".join(span.replace("\\|", " ").split()))]
