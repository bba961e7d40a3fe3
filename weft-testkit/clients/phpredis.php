<?php
// phpredis against a running server.
//
// Usage: phpredis.php PORT SOCKET. Prints one line per check that passed; the first one that does not ends the run.

error_reporting(E_ALL);
set_error_handler(function ($severity, $message) {
    throw new ErrorException($message);
});

$port = (int) $argv[1];
$socket = $argv[2];

function check(string $name, $found, $expected): void
{
    if ($found !== $expected) {
        fwrite(STDERR, "phpredis: $name: " . var_export($found, true) . ' instead of ' . var_export($expected, true) . "\n");
        exit(1);
    }
    echo "ok $name\n";
}

$client = new Redis();
check('connect', $client->connect('127.0.0.1', $port, 10.0), true);
check('flush', $client->flushAll(), true);
check('ping', $client->ping(), true);
check('echo', $client->echo('hello'), 'hello');
check('set', $client->set('greeting', 'hello'), true);
check('get', $client->get('greeting'), 'hello');
check('get of nothing', $client->get('nothing'), false);
$bytes = implode('', array_map('chr', range(0, 255)));
check('binary value', [$client->set('binary', $bytes), $client->get('binary')], [true, $bytes]);
check('set nx', $client->set('greeting', 'again', ['nx', 'ex' => 10]), false);
check('setex and ttl', [$client->setex('short', 100, 'x'), $client->ttl('short')], [true, 100]);
check('mset and mget', [$client->mset(['a' => '1', 'b' => '2']), $client->mget(['a', 'nothing', 'b'])], [true, ['1', false, '2']]);
check('incr', [$client->incr('count'), $client->incrBy('count', 41), $client->decr('count')], [1, 42, 41]);
check('incrByFloat', $client->incrByFloat('float', 10.5), 10.5);
check('append and strlen', [$client->append('text', 'abc'), $client->strlen('text'), $client->getRange('text', 1, 2)], [3, 3, 'bc']);
check('exists and del', [$client->exists(['a', 'b', 'nothing']), $client->del('a', 'b', 'nothing')], [2, 2]);
check('type and rename', [$client->type('text'), $client->rename('text', 'word'), $client->exists('text')], [Redis::REDIS_STRING, true, 0]);
check('object', $client->object('encoding', 'count'), 'int');
$pipe = $client->multi(Redis::PIPELINE);
for ($number = 0; $number < 1000; $number++) {
    $pipe->set("key:$number", (string) $number);
}
for ($number = 0; $number < 1000; $number++) {
    $pipe->get("key:$number");
}
check('pipeline', $pipe->exec(), array_merge(array_fill(0, 1000, true), array_map('strval', range(0, 999))));
$client->setOption(Redis::OPT_SCAN, Redis::SCAN_RETRY);
$iterator = null;
$found = [];
while ($keys = $client->scan($iterator, 'key:99?', 100)) {
    $found = array_merge($found, $keys);
}
$found = array_unique($found);
sort($found);
check('scan', $found, array_map(fn ($digit) => "key:99$digit", range(0, 9)));
// Version 5 leaves a zero byte at the end of some errors.
check('error', [$client->incr('greeting'), rtrim($client->getLastError(), "\0")], [false, 'ERR value is not an integer or out of range']);
$client->clearLastError();
check('raw command', $client->rawCommand('GETRANGE', 'greeting', '0', '1'), 'he');
$info = $client->info();
check('info', [$info['redis_mode'], $info['tcp_port'], $info['role']], ['standalone', $port, 'master']);
check('config', $client->config('GET', 'maxmemory-samples'), ['maxmemory-samples' => '5']);
check('select', [$client->select(2), $client->set('here', '2'), $client->getDBNum()], [true, true, 2]);
$client->setOption(Redis::OPT_SERIALIZER, Redis::SERIALIZER_PHP);
$client->setOption(Redis::OPT_PREFIX, 'pre:');
check('serializer', [$client->set('list', [1, 'two', null]), $client->get('list')], [true, [1, 'two', null]]);
$client->setOption(Redis::OPT_SERIALIZER, Redis::SERIALIZER_IGBINARY);
check('igbinary', [$client->set('map', ['a' => 1.5]), $client->get('map')], [true, ['a' => 1.5]]);
check('close', $client->close(), true);

$client = new Redis();
check('persistent connection', $client->pconnect($socket), true);
check('unix socket', [$client->select(2), $client->get('here'), $client->flushDB()], [true, '2', true]);
check('client name', [$client->client('SETNAME', 'smoke'), $client->client('GETNAME')], [true, 'smoke']);
check('password', $client->config('SET', 'requirepass', 'secret'), true);
try {
    $known = new Redis();
    $known->connect('127.0.0.1', $port);
    check('auth', [$known->auth('secret'), $known->ping()], [true, true]);
    $known = new Redis();
    $known->connect('127.0.0.1', $port);
    check('auth with a user', [$known->auth(['default', 'secret']), $known->ping()], [true, true]);
    $unknown = new Redis();
    $unknown->connect('127.0.0.1', $port);
    try {
        $unknown->get('greeting');
        check('without the password', 'a reply', 'an exception');
    } catch (RedisException $exception) {
        check('without the password', $exception->getMessage(), 'NOAUTH Authentication required.');
    }
} finally {
    check('no password', $client->config('SET', 'requirepass', ''), true);
}
