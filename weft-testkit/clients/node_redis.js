// node-redis against a running server, in RESP2 and RESP3.
//
// Usage: node_redis.js PORT. Prints one line per check that passed; the first one that does not ends the run.

const assert = require("node:assert/strict");
const { createClient } = require("redis");

const port = Number(process.argv[2]);

async function main() {
  for (const RESP of [2, 3]) {
    const client = createClient({ socket: { host: "127.0.0.1", port, reconnectStrategy: false }, RESP });
    client.on("error", (error) => {
      console.error(error);
      process.exit(1);
    });
    const check = async (name, promise, expected) => {
      assert.deepEqual(await promise, expected, `node-redis: RESP${RESP} ${name}`);
      console.log(`ok RESP${RESP} ${name}`);
    };
    await client.connect();
    await client.flushAll();
    await check("ping", client.ping(), "PONG");
    await check("set", client.set("greeting", "hello"), "OK");
    await check("get", client.get("greeting"), "hello");
    await check("get of nothing", client.get("nothing"), null);
    await check("setEx", client.setEx("short", 100, "x"), "OK");
    await check("ttl", client.ttl("short"), 100);
    await check("mSet", client.mSet({ a: "1", b: "2" }), "OK");
    await check("mGet", client.mGet(["a", "nothing", "b"]), ["1", null, "2"]);
    await check("incr", client.incr("count"), 1);
    await check("incrBy", client.incrBy("count", 41), 42);
    await check("append", client.append("greeting", "!"), 6);
    await check("getRange", client.getRange("greeting", -2, -1), "o!");
    await check("del", client.del(["a", "b", "nothing"]), 2);
    const numbers = Array.from({ length: 1000 }, (_, number) => number);
    await check(
      "pipeline",
      Promise.all(numbers.map((number) => client.set(`key:${number}`, String(number)))),
      numbers.map(() => "OK"),
    );
    await check(
      "pipeline read",
      Promise.all(numbers.map((number) => client.get(`key:${number}`))),
      numbers.map(String),
    );
    const found = new Set();
    for await (const keys of client.scanIterator({ MATCH: "key:99?", COUNT: 100 })) {
      for (const key of Array.isArray(keys) ? keys : [keys]) found.add(key);
    }
    await check(
      "scan iterator",
      Promise.resolve([...found].sort()),
      Array.from({ length: 10 }, (_, digit) => `key:99${digit}`),
    );
    await assert.rejects(client.incr("greeting"), { message: "ERR value is not an integer or out of range" });
    console.log(`ok RESP${RESP} error`);
    await client.close();
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
