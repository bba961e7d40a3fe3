"""redis-py's asyncio client against a running server, in RESP2 and RESP3.

Usage: redis_py_async.py PORT SOCKET PARSER, as redis_py.py. Prints one line per check that passed; the first one that
does not ends the run.
"""

import asyncio
import sys

import redis.asyncio as redis
from redis.exceptions import ResponseError

PORT = int(sys.argv[1])
SOCKET = sys.argv[2]
PARSER = sys.argv[3]


def check(name, found, expected):
    if found != expected:
        sys.exit(f"redis-py asyncio: {name}: {found!r} instead of {expected!r}")
    print(f"ok {name}")


async def play(protocol):
    said = f"RESP{protocol}"
    async with redis.Redis(port=PORT, protocol=protocol, client_name="smoke") as client:
        await client.flushall()
        connection = await client.connection_pool.get_connection()
        parser = "hiredis" if "Hiredis" in type(connection._parser).__name__ else "python"
        await client.connection_pool.release(connection)
        check(f"{said} parser", parser, PARSER)
        check(f"{said} ping", await client.ping(), True)
        check(f"{said} name", await client.client_getname(), "smoke" if isinstance(await client.client_getname(), str) else b"smoke")
        check(f"{said} set and get", (await client.set("greeting", "hello"), await client.get("greeting")), (True, b"hello"))
        check(f"{said} get of nothing", await client.get("nothing"), None)
        check(f"{said} expiry", (await client.set("short", "x", ex=100), await client.ttl("short")), (True, 100))
        check(f"{said} mset and mget", (await client.mset({"a": "1", "b": "2"}), await client.mget("a", "nothing", "b")), (True, [b"1", None, b"2"]))
        async with client.pipeline(transaction=False) as pipe:
            for number in range(1000):
                pipe.set(f"key:{number}", number)
            for number in range(1000):
                pipe.get(f"key:{number}")
            check(f"{said} pipeline", await pipe.execute(), [True] * 1000 + [b"%d" % number for number in range(1000)])
        check(f"{said} scan", sorted([key async for key in client.scan_iter(match="key:99?", count=100)]), [b"key:%d" % number for number in range(990, 1000)])
        large = b"x" * 3_000_000
        check(f"{said} large value", (await client.set("large", large), await client.get("large") == large), (True, True))
        try:
            await client.incr("greeting")
            sys.exit(f"redis-py asyncio: {said}: INCR of a word is no error")
        except ResponseError as error:
            check(f"{said} error", str(error), "value is not an integer or out of range")
    pool = redis.BlockingConnectionPool(port=PORT, protocol=protocol, max_connections=10, timeout=20)
    client = redis.Redis(connection_pool=pool)
    found = await asyncio.gather(*(client.incr("shared") for _ in range(500)))
    check(f"{said} 500 at once through 10 connections", sorted(found), list(range(1, 501)))
    await client.aclose()
    await pool.disconnect()
    client = redis.from_url(f"redis://127.0.0.1:{PORT}/2?protocol={protocol}", decode_responses=True)
    check(f"{said} url", (await client.set("here", "2"), await client.get("here")), (True, "2"))
    await client.aclose()
    client = redis.Redis(unix_socket_path=SOCKET, db=2, protocol=protocol)
    check(f"{said} unix socket", (await client.get("here"), await client.delete("here")), (b"2", 1))
    await client.aclose()


async def main():
    for protocol in (2, 3):
        await play(protocol)


asyncio.run(main())
