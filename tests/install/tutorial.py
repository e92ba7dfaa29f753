"""Follows docs/tutorial.md word by word.

A block ```console holds commands, which begin with "$ ". Below each command are some of the lines that it prints, in their
order; "..." in a line matches any text. A block whose first line names a file, such as ```cpp npu.cpp, is written to that
file. Commands share folder and variables, as in one terminal. A block ```console install runs only where packages can be
installed.
"""
import re
import shlex
import textwrap

# Keeps the folder and exported variables from one command to the next.
TERMINAL = """
if [ -e {state}/variables ]; then . {state}/variables; cd "$(cat {state}/folder)"; fi
{command}
status=$?
export -p >{state}/variables
pwd >{state}/folder
exit $status
"""


def blocks(text):
    """The fenced blocks of a page: pairs of the words after ``` and the lines."""
    for words, body in re.findall(r"^```(\S.*?)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield words.split(), body.splitlines()


def commands(lines):
    """The commands of a console block, each with the lines that it prints."""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def first_missing(expected, output):
    """The first expected line that the output does not contain after the earlier expected lines, or None."""
    lines = iter(output.splitlines())
    for line in expected:
        pattern = ".*".join(re.escape(part) for part in line.rstrip().split("..."))
        if not any(re.fullmatch(pattern, each.rstrip()) for each in lines):
            return line
    return None


def follow(page, state, run, write, packages=False):
    """Runs a page. run(script) returns status and output of a bash script, write(name, text) writes a file in the folder of
    the last command, and state is a folder for both. Returns how many commands ran; raises AssertionError, which names the
    command that went wrong.
    """
    count = 0
    for words, lines in blocks(page.read_text()):
        if words[0] != "console":
            if len(words) == 2:
                write(words[1], "\n".join(lines) + "\n")
            continue
        if "install" in words and not packages:
            continue
        for command, expected in commands(lines):
            status, output = run(textwrap.dedent(TERMINAL).format(state=shlex.quote(str(state)), command=command))
            if status != 0:
                raise AssertionError(f"$ {command}\nended with status {status}:\n{output}")
            missing = first_missing(expected, output)
            if missing is not None:
                raise AssertionError(f"$ {command}\nis to print\n{missing}\nafter the lines before it. It printed\n{output}")
            count += 1
    return count
