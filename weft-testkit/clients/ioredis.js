// ioredis against a running server.
//
// Usage: ioredis.js PORT. Prints one line per check that passed; the first one that does not ends the run.

const assert = require("node:assert/strict");
const Redis = require("ioredis");

const port = Number(process.argv[2]);

async function main() {
  const client = new Redis(port, "127.0.0.1", { commandTimeout: 10000, retryStrategy: null });
  const check = async (name, promise, expected) => {
    assert.deepEqual(await promise, expected, `ioredis: ${name}`);
    console.log(`ok ${name}`);
  };
  await client.flushall();
  await check("ping", client.ping(), "PONG");
  await check("set", client.set("greeting", "hello"), "OK");
  await check("get", client.get("greeting"), "hello");
  await check("get of nothing", client.get("nothing"), null);
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  await check("binary value", client.set("binary", bytes), "OK");
  await check("binary value read", client.getBuffer("binary"), bytes);
  await check("set nx", client.set("greeting", "again", "NX"), null);
  await check("set with expiry", client.set("short", "x", "EX", 100), "OK");
  await check("ttl", client.ttl("short"), 100);
  await check("mset", client.mset({ a: "1", b: "2" }), "OK");
  await check("mget", client.mget("a", "nothing", "b"), ["1", null, "2"]);
  await check("incr", client.incr("count"), 1);
  await check("incrbyfloat", client.incrbyfloat("float", 10.5), "10.5");
  await check("del", client.del("a", "b", "nothing"), 2);
  const pipeline = client.pipeline();
  for (let number = 0; number < 1000; number++) pipeline.set(`key:${number}`, number);
  for (let number = 0; number < 1000; number++) pipeline.get(`key:${number}`);
  const replies = await pipeline.exec();
  const expected = [
    ...Array.from({ length: 1000 }, () => [null, "OK"]),
    ...Array.from({ length: 1000 }, (_, number) => [null, String(number)]),
  ];
  await check("pipeline", Promise.resolve(replies), expected);
  const found = [];
  for await (const keys of client.scanStream({ match: "key:99?", count: 100 })) found.push(...keys);
  await check(
    "scan stream",
    Promise.resolve([...new Set(found)].sort()),
    Array.from({ length: 10 }, (_, digit) => `key:99${digit}`),
  );
  await assert.rejects(client.incr("greeting"), { message: "ERR value is not an integer or out of range" });
  console.log("ok error");
  await check("quit", client.quit(), "OK");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
