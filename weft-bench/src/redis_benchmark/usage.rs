//! What `--help` prints.

/// The options, with our own words for what they do.
pub const USAGE: &str = "\
Usage: redis-benchmark [OPTIONS] [COMMAND ARGS...]

Options:
 -h <hostname>      Host of the server (default 127.0.0.1)
 -p <port>          Port of the server (default 6379)
 -s <socket>        Unix socket of the server, instead of host and port
 -a <password>      Password to authenticate with
 --user <username>  User to authenticate as; takes -a for the password
 -u <uri>           Server as redis://user:password@host:port/database
 -c <clients>       Connections at the same time (default 50)
 -n <requests>      Requests of each test, over all connections (default 100000)
 -d <size>          Bytes of the values that tests store (default 3)
 --dbnum <db>       Database to select (default 0)
 -3                 Speak RESP3
 --threads <num>    Spread the connections over so many threads
 --cluster          Spread the connections over the masters of a cluster. A
                    command of your own has to have {tag} in its keys, which
                    becomes a tag of the node it is sent to
 --enable-tracking  Send CLIENT TRACKING on on every connection
 -k <boolean>       1: keep connections (default), 0: a new one for every batch
 -r <keyspacelen>   Put a random number from 0 to keyspacelen-1, of 12 digits,
                    for every __rand_int__ of every request. Tests have it in
                    keys, members and scores; without -r they use one key
 --seed <num>       Start the random numbers from here (default: differently
                    every time)
 -P <numreq>        Send so many requests at once and await all their replies
                    (default 1)
 -q                 Print one line for each test
 --precision <num>  Significant digits of latencies, 0 to 4 (default 3)
 --csv              Print comma-separated values
 -l                 Repeat the tests until interrupted
 -t <tests>         Run only these, comma-separated: names as printed. Without
                    effect when a command is given
 -I                 Open the connections and leave them idle
 -x                 Read the last argument of the command from standard input
 --tls              Connect with TLS. The server has to be vouched for by a known
                    authority, but may be called something else
 --sni <host>       Name to ask the server for
 --cacert <file>    Certificates of the authorities, instead of the system's
 --cacertdir <dir>  Folder with such files
 --insecure         Trust whoever answers
 --cert <file>      Certificate of one's own
 --key <file>       Key to it
 --tls-ciphers <list>
                    Ciphers of TLS 1.2, as OpenSSL names them, between colons
 --tls-ciphersuites <list>
                    Those of TLS 1.3
 --help             Print this
 --version          Print the version

Examples:

 All tests against 127.0.0.1:6379:
   $ redis-benchmark

 Twenty connections and 100000 requests of each test:
   $ redis-benchmark -h 192.168.1.1 -p 6379 -n 100000 -c 20

 Store about a million keys:
   $ redis-benchmark -t set -n 1000000 -r 100000000

 Three tests, comma-separated:
   $ redis-benchmark -t ping,set,get -n 100000 --csv

 A command of your own, on a list of random elements:
   $ redis-benchmark -r 10000 -n 10000 lpush mylist __rand_int__
";
