// ioredis against a running server.
//
// Usage: ioredis.js PORT SOCKET MODULE. Prints one line per check that passed; the first one that does not ends the run.

const assert = require("node:assert/strict");
const Redis = require(process.argv[4]);

const port = Number(process.argv[2]);
const socket = process.argv[3];
const options = { commandTimeout: 10000, retryStrategy: null };

const check = async (name, promise, expected) => {
  assert.deepEqual(await promise, expected, `ioredis: ${name}`);
  console.log(`ok ${name}`);
};

async function commands() {
  const client = new Redis(port, "127.0.0.1", options);
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
  await check("call", client.call("GETRANGE", "greeting", 1, 2), "el");
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

async function connections() {
  const client = new Redis({ ...options, port, db: 2, connectionName: "smoke", keyPrefix: "pre:", enableAutoPipelining: true, lazyConnect: true });
  await client.connect();
  await check("connection name", client.client("GETNAME"), "smoke");
  const numbers = Array.from({ length: 500 }, (_, number) => number);
  await check("automatic pipelining", Promise.all(numbers.map((number) => client.set(`n${number}`, number))), numbers.map(() => "OK"));
  await check("read again", Promise.all(numbers.map((number) => client.get(`n${number}`))), numbers.map(String));
  const other = client.duplicate({ keyPrefix: "", path: socket });
  await check("unix socket, database and prefix", other.get("pre:n7"), "7");
  await check("password", other.config("SET", "requirepass", "secret"), "OK");
  try {
    const known = new Redis(port, "127.0.0.1", { ...options, db: 2, password: "secret" });
    await check("with the password", known.get("pre:n7"), "7");
    known.disconnect();
    const named = new Redis(`redis://default:secret@127.0.0.1:${port}/2`, options);
    await check("url with user and password", named.get("pre:n8"), "8");
    named.disconnect();
    const unknown = new Redis(port, "127.0.0.1", { ...options, enableReadyCheck: false });
    unknown.on("error", () => {});
    // Version 6 says HELLO first.
    const message = process.argv[4] === "ioredis-5" ? "NOAUTH Authentication required." : /^NOAUTH HELLO must be called with the client already authenticated, /;
    await assert.rejects(unknown.get("pre:n7"), { message });
    console.log("ok without the password");
    unknown.disconnect();
  } finally {
    await check("no password", other.config("SET", "requirepass", ""), "OK");
  }
  await check("flush", other.flushdb(), "OK");
  client.disconnect();
  other.disconnect();
}

commands()
  .then(connections)
  .catch((error) => {
    console.error(error);
    process.exit(1);
  });
