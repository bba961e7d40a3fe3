"""hiredis-py against a running server: its writer and its reader on a plain socket, in RESP2 and RESP3.

Usage: hiredis_py.py PORT. Prints one line per check that passed; the first one that does not ends the run.
"""

import socket
import sys

import hiredis

PORT = int(sys.argv[1])


def check(name, found, expected):
    if found != expected:
        sys.exit(f"hiredis-py: {name}: {found!r} instead of {expected!r}")
    print(f"ok {name}")


class Client:
    def __init__(self):
        self.socket = socket.create_connection(("127.0.0.1", PORT), timeout=20)
        self.reader = hiredis.Reader()

    def read(self):
        while True:
            reply = self.reader.gets()
            if reply is not False:
                return reply
            data = self.socket.recv(65536)
            if not data:
                sys.exit("hiredis-py: the server has closed the connection")
            self.reader.feed(data)

    def ask(self, *words):
        self.socket.sendall(hiredis.pack_command(words))
        return self.read()


for protocol in (2, 3):
    said = f"RESP{protocol}"
    client = Client()
    hello = client.ask("HELLO", protocol)
    if protocol == 2:
        hello = dict(zip(hello[::2], hello[1::2]))
    check(f"{said} hello", (hello[b"server"], hello[b"proto"], hello[b"mode"], hello[b"role"]), (b"redis", protocol, b"standalone", b"master"))
    check(f"{said} flush", client.ask("FLUSHALL"), b"OK")
    check(f"{said} set and get", (client.ask("SET", b"k", b"\x00\r\n\xff"), client.ask("GET", "k")), (b"OK", b"\x00\r\n\xff"))
    check(f"{said} nothing", client.ask("GET", "nothing"), None)
    check(f"{said} integer", client.ask("INCRBY", "n", 41), 41)
    check(f"{said} array", client.ask("MGET", "k", "nothing", "n"), [b"\x00\r\n\xff", None, b"41"])
    error = client.ask("INCR", "k")
    check(f"{said} error", (type(error), str(error)), (hiredis.ReplyError, "ERR value is not an integer or out of range"))
    shape = client.ask("CONFIG", "GET", "maxmemory-samples")
    check(f"{said} config", shape, [b"maxmemory-samples", b"5"] if protocol == 2 else {b"maxmemory-samples": b"5"})
    requests = b"".join(hiredis.pack_command(("APPEND", "grown", "x")) for _ in range(5000))
    client.socket.sendall(requests)
    check(f"{said} pipeline", [client.read() for _ in range(5000)], list(range(1, 5001)))
    large = b"y" * 3_000_000
    check(f"{said} large value", (client.ask("SET", "large", large), client.ask("GET", "large") == large), (b"OK", True))
    check(f"{said} quit", (client.ask("QUIT"), client.socket.recv(1)), (b"OK", b""))
