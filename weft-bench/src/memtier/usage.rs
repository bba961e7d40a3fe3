//! What `--help` prints.

/// The options, with our own words for what they do.
pub const USAGE: &str = "\
Usage: memtier_benchmark [options]

Drives load of keys and values against a Redis-compatible server.

Connection and General Options:
  -s, --server=ADDR              Host of the server (default: localhost); also -h, --host
  -p, --port=PORT                Port of the server (default: 6379)
  -S, --unix-socket=SOCKET       Unix socket of the server, instead of host and port
  -4, --ipv4                     Only addresses of IPv4
  -6, --ipv6                     Only addresses of IPv6
  -P, --protocol=PROTOCOL        redis (default), resp2 or resp3
  -a, --authenticate=CREDENTIALS Password, or USER:PASSWORD
  -u, --uri=URI                  Server as redis://user:password@host:port/dbnum
      --tls                      Connect with TLS. The server has to be vouched for by a
                                 known authority, but may be called something else
      --cert=FILE                Certificate of one's own
      --key=FILE                 Key to it
      --cacert=FILE              Certificates of the authorities, instead of the system's
      --tls-skip-verify          Trust whoever answers
      --tls-protocols=LIST       TLSv1.2, TLSv1.3 or both (default), between commas
      --sni=NAME                 Name to ask the server for
      --cluster-mode             Connect every client to every primary of the cluster, and
                                 send each request to the owner of its key's slot
  -x, --run-count=NUMBER         Do the whole test so often
      --help                     Print this
  -v, --version                  Print the version

Results Output Options:
  -o, --out-file=FILE            Print the results here (default: stdout)
      --json-out-file=FILE       Write the results here as JSON, too
      --client-stats=PREFIX      Write PREFIX-RUN-THREAD-CLIENT.csv for each client
      --hdr-file-prefix=PREFIX   Write the histograms of all kinds of requests to files, as
                                 tables (.txt) and as logs of HdrHistogram (.hgrm)
      --show-config              Print what all options are
      --hide-histogram           Leave the distribution of latencies out
      --print-percentiles=LIST   Percentiles in the table (default: 50,99,99.9)
      --print-all-runs           Print every run, not only the best, the worst and
                                 the average
      --command-stats-breakdown=command|line
                                 One line for all commands of a name (default), or
                                 one for each --command
      --statsd-host=HOST         Send figures there every second, over UDP
      --statsd-port=PORT         Its port (default: 8125)
      --statsd-prefix=PREFIX     What the figures' names begin with (default: memtier)
      --statsd-run-label=LABEL   What follows that (default: default)
      --graphite-port=PORT       Where Graphite takes notes of a run's beginning and end
                                 (default: 8080)

Test Options:
  -n, --requests=NUMBER          Requests of each client (default: 10000);
                                 allkeys: as many as there are keys
      --rate-limiting=NUMBER     Requests per second of each connection, at most
  -c, --clients=NUMBER           Clients of each thread (default: 50)
  -t, --threads=NUMBER           Threads (default: 4)
      --test-time=SECS           Run so long, instead of a number of requests
      --clients-start=NUMBER     Begin with so many clients of each thread,
      --clients-step=NUMBER      add so many
      --step-duration=SECS       every so many seconds, until there are all
      --ratio=RATIO              SETs to GETs (default: 1:10)
      --pipeline=NUMBER          Requests of a client under way (default: 1)
      --reconnect-interval=NUM   Open a new connection after so many requests
      --reconnect-on-error       Go on when a connection breaks, and open it again
      --max-reconnect-attempts=NUM
                                 So often, without an answer in between (default: 0,
                                 without end)
      --reconnect-backoff-factor=NUM
                                 Wait NUM to the power of the attempt, in seconds, before
                                 each (default: 0, not at all)
      --connection-timeout=SECS  How long the server may take to accept the first connection
                                 (default: 0, as long as the system waits)
      --thread-conn-start-min-jitter-micros=NUM
      --thread-conn-start-max-jitter-micros=NUM
                                 Microseconds between two connections of a thread,
                                 drawn at random (default: 0)
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
      --monitor-input=FILE       Lines that MONITOR printed. In --command,
                                 __monitor_line3__ stands for the command of the third,
                                 __monitor_line@__ for all of them in turn
      --monitor-pattern=S|R      In their order (default), or at random
      --scan-incremental-iteration
                                 With a single --command=\"SCAN 0 ...\": go on where the
                                 last answer says, to the end, and begin again
      --scan-incremental-max-iterations=NUM
                                 Go on at most so often (default: 0, to the end)

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
      --data-verify              Store values that follow from their keys, and compare them
                                 at the end
      --verify-only              Do nothing but compare

Key Options:
      --key-prefix=PREFIX        What keys begin with (default: memtier-)
      --key-minimum=NUMBER       First key (default: 0)
      --key-maximum=NUMBER       Last key (default: 10000000)
      --key-pattern=PATTERN      Keys of SETs and GETs (default: R:R): G Gaussian,
                                 P sequential in parts, R random, S sequential, Z Zipf
      --key-stddev=NUMBER        Standard deviation for G (default: range / 6)
      --key-median=NUMBER        Median for G (default: middle of the range)
      --key-zipf-exp=NUMBER      Exponent for Z, below 5 (default: 1)

WAIT Options:
      --wait-ratio=SETS:WAITS    Send so many WAITs after so many SETs
      --num-slaves=RANGE         For min-max replicas
      --wait-timeout=RANGE       For min-max milliseconds, most often in the middle

Not supported: the protocols of memcached, importing data.
";
