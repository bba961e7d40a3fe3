"""redis-py against a running server, in RESP2 and RESP3.

Usage: redis_py.py PORT. Prints one line per check that passed; the first one that does not ends the run.
"""

import sys
import time

import redis

PORT = int(sys.argv[1])


def check(name, found, expected):
    if found != expected:
        sys.exit(f"redis-py: {name}: {found!r} instead of {expected!r}")
    print(f"ok {name}")


for protocol in (2, 3):
    with redis.Redis(port=PORT, protocol=protocol, socket_timeout=10) as client:
        said = f"RESP{protocol}"
        client.flushall()
        check(f"{said} ping", client.ping(), True)
        check(f"{said} set", client.set("greeting", "hello"), True)
        check(f"{said} get", client.get("greeting"), b"hello")
        check(f"{said} get of nothing", client.get("nothing"), None)
        check(f"{said} binary value", (client.set("binary", bytes(range(256))), client.get("binary")), (True, bytes(range(256))))
        check(f"{said} set nx", client.set("greeting", "again", nx=True), None)
        check(f"{said} set with get", client.set("greeting", "bye", get=True), b"hello")
        check(f"{said} expiry", (client.set("short", "x", px=20), client.pttl("short") <= 20), (True, True))
        deadline = time.monotonic() + 5
        while client.exists("short") and time.monotonic() < deadline:
            time.sleep(0.005)
        check(f"{said} expired", client.get("short"), None)
        check(f"{said} mset and mget", (client.mset({"a": "1", "b": "2"}), client.mget("a", "nothing", "b")), (True, [b"1", None, b"2"]))
        check(f"{said} incr", [client.incr("count"), client.incrby("count", 41), client.decr("count")], [1, 42, 41])
        check(f"{said} incrbyfloat", client.incrbyfloat("float", "10.5"), 10.5)
        check(f"{said} getrange", client.getrange("greeting", 0, 1), b"by")
        check(f"{said} lcs", (client.set("one", "ohmytext"), client.set("two", "mynewtext"), client.lcs("one", "two")), (True, True, b"mytext"))
        check(f"{said} keys by scan", sorted(client.scan_iter(match="[ab]")), [b"a", b"b"])
        check(f"{said} delete", client.delete("a", "b", "nothing"), 2)
        pipe = client.pipeline(transaction=False)
        for number in range(1000):
            pipe.set(f"key:{number}", number)
        for number in range(1000):
            pipe.get(f"key:{number}")
        replies = pipe.execute()
        check(f"{said} pipeline", replies, [True] * 1000 + [b"%d" % number for number in range(1000)])
        large = b"x" * 3_000_000
        check(f"{said} large value", (client.set("large", large), client.get("large") == large), (True, True))
        try:
            client.execute_command("INCR", "greeting")
            check(f"{said} error", "no error", "an error")
        except redis.ResponseError as error:
            check(f"{said} error", str(error), "value is not an integer or out of range")
        check(f"{said} select", (client.execute_command("SELECT", 1), client.get("greeting")), (True, None) if protocol == 2 else (True, None))
        client.execute_command("SELECT", 0)
        info = client.execute_command("COMMAND", "INFO", "get")
        check(f"{said} command info", bool(info), True)
