"""What programs know, as their --help tells, and what of a command line they do not know."""

import re
import subprocess

FLAG = re.compile(r"^ +(?:(-\w), )?(--[a-z][a-z0-9-]*)(?: [<\[].*)?$", re.MULTILINE)
VARIABLE = re.compile(r"\[env: ([A-Z][A-Z0-9_]*)")
COMMAND = re.compile(r"^  ([a-z][a-z0-9-]*)(?: |$)", re.MULTILINE)


class Command:
    """A program, or one of its commands with the commands under it."""

    def __init__(self, words):
        self.name = " ".join(words[1:])
        asked = subprocess.run([*words, "--help"], capture_output=True, text=True, check=True)
        head, _, options = asked.stdout.partition("\nOptions:\n")
        _, _, listed = head.partition("\nCommands:\n")
        self.variables = set(VARIABLE.findall(asked.stdout))
        # Each flag, short and long, and whether a value follows.
        self.flags = {}
        for line in FLAG.finditer(options):
            for flag in filter(None, line.groups()):
                self.flags[flag] = line[0].endswith((">", "]", "..."))
        self.commands = {
            name: Command([*words, name]) for name in COMMAND.findall(listed) if name != "help"
        }

    def all_variables(self):
        """The variables of it and of all commands under it."""
        under = (command.all_variables() for command in self.commands.values())
        return self.variables.union(*under)

    def complaints(self, arguments):
        """What of the arguments it does not know."""
        command, rest = self, list(arguments)
        while rest:
            word = rest.pop(0)
            flag, value_follows, _ = word.partition("=")
            if word.startswith("-") and word != "-":
                if flag not in command.flags:
                    yield f"{command.name or 'the program'} has no {flag}"
                elif command.flags[flag] and not value_follows and rest:
                    rest.pop(0)
            elif command.commands:
                if word not in command.commands:
                    yield f"there is no command {command.name} {word}".replace("  ", " ")
                    return
                command = command.commands[word]
