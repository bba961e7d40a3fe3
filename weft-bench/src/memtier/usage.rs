//! What `--help` prints.

/// The options, with our own words for what they do.
pub const USAGE: &str = "\
Usage: memtier_benchmark [options]

Drives load of keys and values against a Redis-compatible server.

Connection and General Options:
  -s, --server=ADDR              Host of the server (default: localhost); also --host
  -p, --port=PORT                Port of the server (default: 6379)
  -S, --unix-socket=SOCKET       Unix socket of the server, instead of host and port
  -P, --protocol=PROTOCOL        redis (default), resp2 or resp3
  -a, --authenticate=CREDENTIALS Password, or USER:PASSWORD
  -u, --uri=URI                  Server as redis://user:password@host:port/dbnum
  -x, --run-count=NUMBER         Do the whole test so often
  -h, --help                     Print this
  -v, --version                  Print the version

Results Output Options:
  -o, --out-file=FILE            Print the results here (default: stdout)
      --json-out-file=FILE       Write the results here as JSON, too
      --hide-histogram           Leave the distribution of latencies out
      --print-percentiles=LIST   Percentiles in the table (default: 50,99,99.9)
      --print-all-runs           Print every run, not only the best, the worst and
                                 the average
      --command-stats-breakdown=command|line
                                 One line for all commands of a name (default), or
                                 one for each --command

Test Options:
  -n, --requests=NUMBER          Requests of each client (default: 10000);
                                 allkeys: as many as there are keys
      --rate-limiting=NUMBER     Requests per second of each connection, at most
  -c, --clients=NUMBER           Clients of each thread (default: 50)
  -t, --threads=NUMBER           Threads (default: 4)
      --test-time=SECS           Run so long, instead of a number of requests
      --ratio=RATIO              SETs to GETs (default: 1:10)
      --pipeline=NUMBER          Requests of a client under way (default: 1)
      --reconnect-interval=NUM   Open a new connection after so many requests
      --multi-key-get=NUM        MGET of so many keys instead of GET
      --select-db=DB             Database to select
      --distinct-client-seed     Give every client random numbers of its own
      --randomize                Start the random numbers differently every time

Arbitrary command:
      --command=COMMAND          Send this instead of SET and GET; may be repeated.
                                 __key__ stands for a key, __data__ for a value
      --command-ratio=NUM        Send the command so often before the next one's
                                 turn (default: 1)
      --command-key-pattern=PATTERN
                                 Keys of the command: G, P, R (default), S or Z

Object Options:
  -d, --data-size=SIZE           Bytes of a value (default: 32)
      --data-offset=OFFSET       Write and read behind so many bytes of it, with
                                 SETRANGE and GETRANGE
  -R, --random-data              Random bytes
      --data-size-range=RANGE    Sizes from min-max
      --data-size-list=LIST      Sizes with weights: size1:weight1,size2:weight2
      --data-size-pattern=R|S    With a range: sizes at random (default), or growing
                                 with the key
      --expiry-range=RANGE       Let keys expire after min-max seconds

Key Options:
      --key-prefix=PREFIX        What keys begin with (default: memtier-)
      --key-minimum=NUMBER       First key (default: 0)
      --key-maximum=NUMBER       Last key (default: 10000000)
      --key-pattern=PATTERN      Keys of SETs and GETs (default: R:R): G Gaussian,
                                 P sequential in parts, R random, S sequential, Z Zipf
      --key-stddev=NUMBER        Standard deviation for G (default: range / 6)
      --key-median=NUMBER        Median for G (default: middle of the range)
      --key-zipf-exp=NUMBER      Exponent for Z, below 5 (default: 1)

Not supported yet: TLS, cluster mode, monitor input, WAIT, steps of clients, reconnecting after errors,
HDR files. Not supported: the protocols of memcached, importing data.
";
