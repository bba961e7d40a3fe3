"""redis-cli in a terminal: completion, hints and help, which it makes of what COMMAND DOCS says, and what it shows for ever.

Usage: redis_cli_terminal.py REDIS_CLI PORT. Prints one line per check that passed; the first one that does not ends the run.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

REDIS_CLI, PORT = sys.argv[1], sys.argv[2]
SECONDS = 20
PROMPT = f"127.0.0.1:{PORT}> "


def fail(name, what):
    sys.exit(f"redis-cli in a terminal: {name}: {what}")


class Terminal:
    def __init__(self, *words):
        self.child, self.file = pty.fork()
        if self.child == 0:
            environment = dict(os.environ, TERM="xterm", REDISCLI_HISTFILE="/dev/null", REDISCLI_RCFILE="/dev/null")
            # Wide enough that no line is cut: a width of 0 would be asked of the terminal.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
            os.execve(REDIS_CLI, [REDIS_CLI, "-p", PORT, *words], environment)
        self.said = ""

    def until(self, pattern, name):
        """The match of `pattern`; all up to its end is taken."""
        deadline = time.monotonic() + SECONDS
        while not (match := re.search(pattern, self.said)):
            ready, _, _ = select.select([self.file], [], [], max(0, deadline - time.monotonic()))
            try:
                data = os.read(self.file, 65536) if ready else b""
            except OSError:
                data = b""
            if not data:
                fail(name, f"{pattern!r} does not come after {self.said!r}")
            self.said += re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", data.decode()).replace("\r", "")
        self.said = self.said[match.end():]
        print(f"ok {name}")
        return match

    def type(self, text):
        os.write(self.file, text.encode())

    def end(self):
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        os.close(self.file)


def prompt():
    terminal = Terminal()
    ready = "\n" + re.escape(PROMPT)
    terminal.until(re.escape(PROMPT), "prompt")

    def ask(text, pattern, name):
        """Types a line, finds its reply, and waits for the next prompt: what is typed before it is lost."""
        terminal.type(text + "\r")
        terminal.until(pattern, name)
        terminal.until(ready, f"prompt after {name}")

    ask("flushall", r"\nOK", "a command")
    ask("set terminal hello", r"\nOK", "another")
    terminal.type("getra\t")
    terminal.until("GETRANGE", "completion")
    terminal.type(" ")
    terminal.until("key start end", "hint")
    ask("terminal 1 3", '\n"ell"', "the completed command")
    terminal.type("object en\t")
    terminal.until("OBJECT ENCODING", "completion of a subcommand")
    ask(" terminal", '\n"embstr"', "the completed subcommand")
    ask("help getrange", r"\n\n  GETRANGE key start end\n  summary: .+\n  since: 2\.4\.0\n  group: string\n", "help of a command")
    ask("help @string", r"\n  INCRBYFLOAT key increment\n  summary: ", "help of a group")
    ask("hello 3", r'\n1# "server" => "redis"\n', "change of protocol")
    ask("get nothing", r"\n\(nil\)", "absent value")
    terminal.type("select 3\r")
    terminal.until(re.escape(f"\n127.0.0.1:{PORT}[3]> "), "prompt of a database")
    terminal.end()


def without_end():
    terminal = Terminal("--stat", "-i", "0.05")
    terminal.until(r"------- data ------ --------------------- load -------------------- - child -\n", "statistics")
    terminal.until(r"keys       mem      clients blocked requests            connections +\n", "their head")
    first = terminal.until(r"1 +\d+\.\d\d[KM] +1 +0 +(\d+) \(\+0\) +(\d+) +\n", "their first line")
    for number in range(1, 4):
        later = terminal.until(r"1 +\d+\.\d\d[KM] +1 +0 +(\d+) \(\+1\) +(\d+) +\n", "a later line")
        if (int(later[1]), later[2]) != (int(first[1]) + number, first[2]):
            fail("statistics", f"{later[0]!r} follows {first[0]!r}")
    terminal.end()
    terminal = Terminal("--latency")
    terminal.until(r"min: \d+, max: \d+, avg: \d+\.\d\d \(\d+ samples\)", "latency")
    terminal.end()
    terminal = Terminal("--latency-history", "-i", "0.1")
    for _ in range(2):
        terminal.until(r"min: \d+, max: \d+, avg: \d+\.\d\d \(\d+ samples\) -- 0\.\d\d seconds range\n", "latency history")
    terminal.end()
    terminal = Terminal("--latency-dist", "-i", "0.1")
    terminal.until(r"From 0 to 100%: ", "latency distribution")
    for _ in range(2):
        terminal.until(r"\.-\*#123456789ABCDEFGHIJKLMNOPQ\?\n", "a line of it")
    terminal.end()


prompt()
without_end()
