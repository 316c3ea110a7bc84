"""Lc0 itself, asked over UCI what its network says of positions."""

import re
import subprocess

MOVE = re.compile(r"info string (\w+) +\( *\d+ *\) .*\(P: *([\d.]+)%\)")
NODE = re.compile(r"info string node .*\(WL: *(\S+)\) \(D: *(\S+)\)")


class Lc0Engine:
    """The program `lc0` with a network, and a backend written NAME:OPTIONS. Priors come with 4 digits, values with 5,
    draws with 3."""

    def __init__(self, program, network, backend):
        command = [program, f"--weights={network}", "--verbose-move-stats", "--policy-softmax-temp=1.0",
                   "--threads=1", "--history-fill=fen_only"]
        name, _, settings = (backend or "").partition(":")
        command += [f"--backend={name}"] if name else []
        command += [f"--backend-opts={settings}"] if settings else []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, bufsize=1)
        self.send("setoption name UCI_Chess960 value true")

    def send(self, line):
        self.process.stdin.write(line + "\n")

    def ask(self, line):
        """Priors by move (castling is king takes rook), and win, draw and loss."""
        position = line if line.startswith("startpos") else "fen " + line
        for command in ("ucinewgame", f"position {position}", "go nodes 1"):
            self.send(command)
        priors, value = {}, None
        for text in self.process.stdout:
            if move := MOVE.match(text):
                if move[1] != "node":
                    priors[move[1]] = float(move[2]) / 100
            if node := NODE.match(text):
                q, draw = float(node[1]), float(node[2])
                value = ((1 - draw + q) / 2, draw, (1 - draw - q) / 2)
            if text.startswith("bestmove"):
                return priors, value
        raise SystemExit(f"lc0 ended at: {line}")

    def close(self):
        self.send("quit")
        self.process.wait(timeout=30)
