// node-redis against a running server, in RESP2 and RESP3.
//
// Usage: node_redis.js PORT SOCKET MODULE. Prints one line per check that passed; the first one that does not ends the run.

const assert = require("node:assert/strict");
const { createClient, createClientPool } = require(process.argv[4]);

const port = Number(process.argv[2]);
const path = process.argv[3];

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
    await check("unknown command", client.sendCommand(["NONSENSE"]).catch((error) => error.message), "ERR unknown command 'NONSENSE', with args beginning with: ");
    await check("config", client.configGet("maxmemory-samples").then((found) => ({ ...found })), { "maxmemory-samples": "5" });
    const pool = createClientPool({ socket: { host: "127.0.0.1", port }, RESP }, { minimum: 2, maximum: 4 });
    await pool.connect();
    await client.del("shared");
    const counted = await Promise.all(numbers.map(() => pool.incr("shared")));
    await check("pool", Promise.resolve(counted.sort((a, b) => a - b)), numbers.map((number) => number + 1));
    await pool.close();
    const named = await createClient({ socket: { path }, RESP, name: "smoke", database: 2 }).connect();
    await check("name, unix socket", named.sendCommand(["CLIENT", "GETNAME"]), "smoke");
    await check("database", named.set("here", "2"), "OK");
    await client.configSet("requirepass", "secret");
    try {
      const known = await createClient({ url: `redis://default:secret@127.0.0.1:${port}/2`, RESP }).connect();
      await check("url with user and password", known.getDel("here"), "2");
      await known.close();
      const unknown = createClient({ socket: { host: "127.0.0.1", port, reconnectStrategy: false }, password: "wrong", RESP });
      unknown.on("error", () => {});
      await assert.rejects(unknown.connect(), { message: "WRONGPASS invalid username-password pair or user is disabled." });
      console.log(`ok RESP${RESP} wrong password`);
    } finally {
      await client.configSet("requirepass", "");
    }
    await named.close();
    await client.close();
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
