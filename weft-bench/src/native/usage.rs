//! How `weft-bench run` is used.

/// The text.
pub const USAGE: &str = "\
Usage: weft-bench run [options] [-- COMMAND ARGUMENT ...]

Sends a workload and reports rate, latencies and failures. Without commands: SET and GET, 1:9.

Server:
  -h, --host HOST            (127.0.0.1)
  -p, --port PORT            (6379)
  -s, --socket PATH          a Unix socket
  --target HOST:PORT|PATH    one more server; connections go to all of them in turn
  -u, --uri URI              redis://user:password@host:port/database
  --user NAME, -a, --password PASSWORD
  --db N                     database
  -3, --resp3                HELLO 3 first
  --server-pid PID           report the processor time of this process, per request and per unit

Load:
  -c, --connections N        (50)
  -P, --pipeline N           requests of a connection under way (1; with --rate 1000)
  -t, --threads N            threads of this program (1)
  -d, --duration TIME        (10s)
  -n, --requests N           instead of a duration
  --warmup TIME              not recorded, before the rest
  --rate N                   open loop: so many requests (or units) per second, whatever the answers do; latencies count
                             from the time a request was due
  --arrivals poisson|constant  how the rate is spread (poisson)
  --storm N                  so many connections per second, each opened for one request and closed
  --think TIME|exponential:TIME  closed loop: pause between an answer and the next request
  --reconnect-every N        open each connection again after so many requests
  --drain TIME               how long to wait for answers in the end (10s)
  --seed N                   of all random numbers (1)

Workload:
  --ratio SETS:GETS          (1:9)
  --command TEXT [--weight N]  a command of your own; may be repeated, and is drawn by weight
  --script FILE              units of several commands, with fields of answers used in later ones
  --setup TEXT               a command to send once before; may be repeated
  --fill                     set every key once before
  --keys N                   (100000)
  --key-prefix TEXT          (key:)
  --key-first N              number of the first key (0)
  --key-digits N             leading zeroes up to so many digits
  --key-distribution D       uniform, sequential, gaussian[:CENTRE][:SPREAD], zipf:THETA, hot:KEYS:REQUESTS
  --value-size SIZES         128, 16-1k, or sizes with weights: 100=90,10k=10
  --verify                   values carry their key and a checksum; a wrong answer is a failure

In commands: {key} {key:NAME} {key*N} {pair*N} {value} {value:SIZES} {int:FROM-TO} {number} {connection}, and names of
captured fields. {key prefix=P count=N first=N digits=N dist=D} is a key of another kind. {{ and }} are braces.

Output:
  --name TEXT                what to call this run in the report
  --json-out FILE            the report (-: to the standard output, instead of the text)
  --csv-out FILE             a line for each second
  --hdr-out FILE             a log of HDR histograms, one for each second
  --progress, --no-progress  show progress; otherwise if there is a terminal
";
