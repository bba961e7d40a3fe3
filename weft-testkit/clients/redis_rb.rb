# redis-rb against a running server.
#
# Usage: redis_rb.rb PORT SOCKET. Prints one line per check that passed; the first one that does not ends the run.

require 'redis'

PORT = Integer(ARGV[0])
SOCKET = ARGV[1]

def check(name, found, expected)
  abort "redis-rb: #{name}: #{found.inspect} instead of #{expected.inspect}" unless found == expected
  puts "ok #{name}"
end

def refused(name, kind, text)
  found = yield
  abort "redis-rb: #{name}: #{found.inspect} instead of an error"
rescue Redis::BaseError => error
  check(name, [error.class, error.message], [kind, text])
end

client = Redis.new(port: PORT, timeout: 10)
check('flush', client.flushall, 'OK')
check('ping', client.ping, 'PONG')
check('echo', client.echo('hello'), 'hello')
check('set', client.set('greeting', 'hello'), 'OK')
check('get', client.get('greeting'), 'hello')
check('get of nothing', client.get('nothing'), nil)
bytes = (0..255).to_a.pack('C*')
check('binary value', [client.set('binary', bytes), client.get('binary').b], ['OK', bytes])
check('set nx', client.set('greeting', 'again', nx: true), false)
check('set with get', client.set('greeting', 'bye', get: true), 'hello')
check('setex and ttl', [client.setex('short', 100, 'x'), client.ttl('short')], ['OK', 100])
check('mset and mget', [client.mset('a', '1', 'b', '2'), client.mget('a', 'nothing', 'b')], ['OK', ['1', nil, '2']])
check('mapped mget', client.mapped_mget('a', 'nothing'), { 'a' => '1', 'nothing' => nil })
check('incr', [client.incr('count'), client.incrby('count', 41), client.decr('count')], [1, 42, 41])
check('incrbyfloat', client.incrbyfloat('float', 10.5), 10.5)
check('append and getrange', [client.append('text', 'abc'), client.strlen('text'), client.getrange('text', 1, 2)], [3, 3, 'bc'])
check('getex and getdel', [client.getex('a', ex: 50), client.ttl('a'), client.getdel('a')], ['1', 50, '1'])
check('exists and del', [client.exists('b', 'nothing'), client.exists?('b'), client.del('b', 'nothing')], [1, true, 1])
check('type and rename', [client.type('text'), client.rename('text', 'word'), client.exists?('text')], ['string', 'OK', false])
check('object', client.object(:encoding, 'count'), 'int')
replies = client.pipelined do |pipe|
  1000.times { |number| pipe.set("key:#{number}", number) }
  1000.times { |number| pipe.get("key:#{number}") }
end
check('pipeline', replies, ['OK'] * 1000 + (0...1000).map(&:to_s))
check('scan', client.scan_each(match: 'key:99?', count: 100).to_a.uniq.sort, (0..9).map { |digit| "key:99#{digit}" })
refused('error', Redis::CommandError, 'ERR value is not an integer or out of range') { client.incr('greeting') }
refused('unknown command', Redis::CommandError, "ERR unknown command 'nonsense', with args beginning with: 'a'") { client.call(:nonsense, 'a') }
info = client.info
check('info', info.values_at('redis_mode', 'tcp_port', 'role'), ['standalone', PORT.to_s, 'master'])
check('config', client.config(:get, 'maxmemory-samples'), { 'maxmemory-samples' => '5' })
check('time', (client.time[0] - Time.now.to_i).abs < 5, true)
client.close

client = Redis.new(path: SOCKET, db: 2, id: 'smoke')
check('unix socket and database', [client.set('here', '2'), client.get('here')], %w[OK 2])
check('client name', client.client(:getname), 'smoke')
check('password', client.config(:set, 'requirepass', 'secret'), 'OK')
begin
  known = Redis.new(url: "redis://:secret@127.0.0.1:#{PORT}/2")
  check('url with a password', known.get('here'), '2')
  known.close
  known = Redis.new(port: PORT, db: 2, username: 'default', password: 'secret')
  check('user and password', known.getdel('here'), '2')
  known.close
  refused('without the password', Redis::CommandError, 'NOAUTH Authentication required.') { Redis.new(port: PORT).get('here') }
ensure
  check('no password', client.config(:set, 'requirepass', ''), 'OK')
end
client.close
