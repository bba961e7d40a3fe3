"""redis-py against a running server, in RESP2 and RESP3: commands, pipelines, connection pools, passwords.

Usage: redis_py.py PORT SOCKET PARSER, where PARSER, python or hiredis, is what replies have to be read by. Prints one line
per check that passed; the first one that does not ends the run.
"""

import sys
import threading
import time

import redis

PORT = int(sys.argv[1])
SOCKET = sys.argv[2]
PARSER = sys.argv[3]
THREADS = 8
ROUNDS = 200


def check(name, found, expected):
    if found != expected:
        sys.exit(f"redis-py: {name}: {found!r} instead of {expected!r}")
    print(f"ok {name}")


def refused(name, kind, text, call):
    try:
        found = call()
    except redis.RedisError as error:
        check(name, (type(error), str(error)), (kind, text))
    else:
        sys.exit(f"redis-py: {name}: {found!r} instead of an error")


def parser_of(client):
    connection = client.connection_pool.get_connection()
    try:
        return "hiredis" if "Hiredis" in type(connection._parser).__name__ else "python"
    finally:
        client.connection_pool.release(connection)


def commands(said, client):
    client.flushall()
    check(f"{said} parser", parser_of(client), PARSER)
    check(f"{said} ping", client.ping(), True)
    check(f"{said} echo", client.echo("hello"), b"hello")
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
    check(f"{said} ttl", (client.ttl("greeting"), client.ttl("nothing"), client.expire("greeting", 100), client.ttl("greeting")), (-1, -2, True, 100))
    check(f"{said} mset and mget", (client.mset({"a": "1", "b": "2"}), client.mget("a", "nothing", "b")), (True, [b"1", None, b"2"]))
    check(f"{said} msetnx", (client.msetnx({"a": "9", "z": "9"}), client.exists("a", "z")), (False, 1))
    check(f"{said} incr", [client.incr("count"), client.incrby("count", 41), client.decr("count")], [1, 42, 41])
    check(f"{said} incrbyfloat", client.incrbyfloat("float", "10.5"), 10.5)
    check(f"{said} append and strlen", (client.append("text", "abc"), client.append("text", "de"), client.strlen("text")), (3, 5, 5))
    check(f"{said} getrange and setrange", (client.getrange("greeting", 0, 1), client.setrange("greeting", 1, "u"), client.get("greeting")), (b"by", 3, b"bue"))
    check(f"{said} getdel and getex", (client.getex("a", ex=50), client.ttl("a"), client.getdel("a"), client.get("a")), (b"1", 50, b"1", None))
    check(f"{said} lcs", (client.set("one", "ohmytext"), client.set("two", "mynewtext"), client.lcs("one", "two")), (True, True, b"mytext"))
    check(f"{said} type and rename", (client.type("one"), client.rename("one", "three"), client.exists("one", "three")), (b"string", True, 1))
    check(f"{said} object encoding", (client.set("number", 12), client.object("encoding", "number")), (True, b"int"))
    check(f"{said} keys by scan", sorted(client.scan_iter(match="t[wh]*")), [b"three", b"two"])
    check(f"{said} keys", sorted(client.keys("t*")), [b"text", b"three", b"two"])
    check(f"{said} delete", client.delete("b", "three", "nothing"), 2)
    pipe = client.pipeline(transaction=False)
    for number in range(1000):
        pipe.set(f"key:{number}", number)
    for number in range(1000):
        pipe.get(f"key:{number}")
    check(f"{said} pipeline", pipe.execute(), [True] * 1000 + [b"%d" % number for number in range(1000)])
    found = client.pipeline(transaction=False).set("word", "x").incr("word").get("word").execute(raise_on_error=False)
    check(f"{said} error in a pipeline", [str(reply) for reply in found], ["True", "value is not an integer or out of range", "b'x'"])
    large = b"x" * 3_000_000
    check(f"{said} large value", (client.set("large", large), client.get("large") == large), (True, True))
    refused(f"{said} error", redis.ResponseError, "value is not an integer or out of range", lambda: client.incr("greeting"))
    refused(f"{said} unknown command", redis.ResponseError, "unknown command 'NONSENSE', with args beginning with: 'a' ", lambda: client.execute_command("NONSENSE", "a"))
    info = client.info()
    check(f"{said} info", (info["redis_mode"], info["tcp_port"], info["connected_clients"] >= 1, info["role"]), ("standalone", PORT, True, "master"))
    check(f"{said} config", (client.config_set("maxmemory-samples", 7), client.config_get("maxmemory-samples"), client.config_set("maxmemory-samples", 5)), (True, {"maxmemory-samples": "7"}, True))
    check(f"{said} time", abs(client.time()[0] - time.time()) < 5, True)
    check(f"{said} dbsize and flushdb", (client.dbsize() > 1000, client.flushdb(), client.dbsize()), (True, True, 0))


def handshakes(said, protocol):
    with redis.Redis(port=PORT, protocol=protocol, db=3, client_name="smoke", decode_responses=True) as client:
        check(f"{said} name", client.client_getname(), "smoke")
        check(f"{said} database", (client.set("here", "3"), client.get("here")), (True, "3"))
        check(f"{said} identity", isinstance(client.client_id(), int), True)
    with redis.from_url(f"redis://127.0.0.1:{PORT}/3?protocol={protocol}") as client:
        check(f"{said} url", (client.get("here"), client.delete("here")), (b"3", 1))
    # Version 7 asks a connection of RESP3 for its host name, which one of a Unix socket has not.
    with redis.Redis(unix_socket_path=SOCKET, protocol=2 if redis.__version__ < "8" else protocol) as client:
        check(f"{said} unix socket", (client.set("here", "0"), client.get("here")), (True, b"0"))
        client.config_set("requirepass", "secret")
        try:
            with redis.Redis(port=PORT, protocol=protocol, password="secret") as known:
                check(f"{said} password", known.get("here"), b"0")
            with redis.Redis(port=PORT, protocol=protocol, username="default", password="secret") as known:
                check(f"{said} user and password", known.get("here"), b"0")
            with redis.Redis(port=PORT, protocol=protocol, password="wrong") as unknown:
                refused(f"{said} wrong password", redis.AuthenticationError, "invalid username-password pair or user is disabled.", unknown.ping)
            with redis.Redis(port=PORT, protocol=protocol) as unknown:
                refused(f"{said} no password", redis.AuthenticationError, NO_PASSWORD[protocol], lambda: unknown.get("here"))
        finally:
            client.config_set("requirepass", "")


NO_PASSWORD = {
    2: "Authentication required.",
    3: "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
}


def pools(said, protocol):
    pool = redis.BlockingConnectionPool(port=PORT, protocol=protocol, max_connections=4, timeout=20)
    client = redis.Redis(connection_pool=pool)
    client.delete("shared")
    seen = set()

    def work():
        for _ in range(ROUNDS):
            client.incr("shared")
            seen.add(client.client_id())

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(f"{said} blocking pool", (client.get("shared"), 1 <= len(seen) <= 4), (b"%d" % (THREADS * ROUNDS), True))
    pool.disconnect()
    check(f"{said} pool after its connections are gone", client.get("shared"), b"%d" % (THREADS * ROUNDS))
    client.close()
    small = redis.ConnectionPool(port=PORT, protocol=protocol, max_connections=2)
    held = [small.get_connection() for _ in range(2)]
    refused(f"{said} pool that is used up", redis.exceptions.MaxConnectionsError, "Too many connections", small.get_connection)
    for connection in held:
        small.release(connection)
    check(f"{said} pool again", redis.Redis(connection_pool=small).ping(), True)
    small.disconnect()


for protocol in (2, 3):
    said = f"RESP{protocol}"
    with redis.Redis(port=PORT, protocol=protocol, socket_timeout=20) as client:
        commands(said, client)
    handshakes(said, protocol)
    pools(said, protocol)
