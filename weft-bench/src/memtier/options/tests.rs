//! Command lines as people write them, and what is said to those that cannot be.

use super::*;

fn parsed(arguments: &[&str]) -> Result<Options, Instead> {
    let arguments: Vec<Vec<u8>> = arguments
        .iter()
        .map(|argument| argument.as_bytes().to_vec())
        .collect();
    parse(&arguments)
}

fn refusal(arguments: &[&str]) -> String {
    match parsed(arguments) {
        Err(Instead::Refused(why)) => why,
        other => panic!("{arguments:?}: {other:?}"),
    }
}

#[test]
fn options_are_read_in_all_their_spellings() {
    let options = parsed(&[
        "-s",
        "h",
        "-p7000",
        "--clients=20",
        "--threads",
        "2",
        "-n",
        "allkeys",
        "--pipe=4",
        "-Rd",
        "128",
        "--ratio=1:0",
        "--key-pattern=P:G",
        "--key-min=5",
        "--key-maximum=50",
        "--key-prefix=",
        "-a",
        "me:secret",
        "--protocol=resp3",
        "--select-db=3",
        "--expiry-range=10-20",
        "--hide-histogram",
        "--distinct-client-seed",
        "--print-percentiles=50,99.99",
        "-x3",
        "-oout.txt",
        "--reconnect-interval=9",
        "--rate-limiting=100",
    ])
    .unwrap();
    let expected = Options {
        server: "h".to_owned(),
        port: 7000,
        clients: 20,
        threads: 2,
        requests: Requests::AllKeys,
        pipeline: 4,
        random_data: true,
        data_sizes: Sizes::Fixed(128),
        ratio: (1, 0),
        key_patterns: (Pattern::Parallel, Pattern::Gaussian),
        key_minimum: 5,
        key_maximum: 50,
        key_prefix: Vec::new(),
        user: Some(b"me".to_vec()),
        password: Some(b"secret".to_vec()),
        resp: Some(3),
        database: Some(3),
        expiry: Some((10, 20)),
        hide_histogram: true,
        distinct_client_seed: true,
        percentiles: vec![50.0, 99.99],
        run_count: 3,
        out_file: Some("out.txt".into()),
        reconnect_interval: 9,
        rate_limit: 100,
        ..Options::default()
    };
    assert_eq!(options, expected);
    assert_eq!(parsed(&[]), Ok(Options::default()));
    assert_eq!(parsed(&["--help"]), Err(Instead::Usage));
    assert_eq!(parsed(&["-v"]), Err(Instead::Version));
}

#[test]
fn published_spellings_are_understood() {
    let options = parsed(&["--run-time=60"]).unwrap();
    assert_eq!(options.test_seconds, Some(60));
    assert_eq!(options.understood, ["--run-time as --test-time"]);
    let options = parsed(&[
        "--key-pattern=S:S",
        "--ratio=1:3",
        "--command=SET user:{{id}} {{value}}",
        "--command=GET user:{{id}}",
        "--command=PING",
    ])
    .unwrap();
    let command = |text: &str, ratio| CommandOption {
        text: text.as_bytes().to_vec(),
        ratio,
        pattern: Pattern::Sequential,
    };
    assert_eq!(
        options.commands,
        [
            command("SET user:__key__ __data__", 1),
            command("GET user:__key__", 3),
            command("PING", 1)
        ]
    );
    assert_eq!(
        options.understood,
        [
            "{{id}} as __key__",
            "{{value}} as __data__",
            "--ratio as the ratios of the commands, in their order",
            "--key-pattern (its first letter) as that of the commands"
        ]
    );
    let options = parsed(&["--ratio=1:0", "--command=SET key:{{id}} {{value}}"]).unwrap();
    assert_eq!(options.commands[0].ratio, 1);
}

#[test]
fn options_of_a_command_follow_it() {
    let options = parsed(&[
        "--command=a",
        "--command-ratio=3",
        "--command-key-pattern=Z",
        "--command=b",
    ])
    .unwrap();
    assert_eq!(
        (options.commands[0].ratio, options.commands[0].pattern),
        (3, Pattern::Zipf)
    );
    assert_eq!(
        (options.commands[1].ratio, options.commands[1].pattern),
        (1, Pattern::Random)
    );
    assert_eq!(
        refusal(&["--command-ratio=3"]),
        "--command-ratio belongs behind a --command"
    );
}

#[test]
fn what_cannot_be_is_refused() {
    for (arguments, why) in [
        (&["--foo"][..], "unrecognized option --foo"),
        (&["-q"], "unrecognized option -q"),
        (&["foo"], "unrecognized option foo"),
        (&["--key-m=5"], "option --key-m is ambiguous"),
        (&["--clients"], "option --clients needs a value"),
        (&["--randomize=1"], "option --randomize takes no value"),
        (
            &["--clients=0"],
            "--clients must be a number from 1 to 1048576",
        ),
        (&["-t", "x"], "--threads must be a number from 1 to 1024"),
        (&["-n0"], "--requests must be a number of at least 1"),
        (&["--ratio=1"], "--ratio is two numbers, not both 0"),
        (&["--ratio=0:0"], "--ratio is two numbers, not both 0"),
        (
            &["--key-pattern=R"],
            "--key-pattern is two letters, such as R:R",
        ),
        (
            &["--key-pattern=R:X"],
            "--key-pattern consists of the letters G, P, R, S and Z",
        ),
        (
            &["--key-minimum=5", "--key-maximum=5"],
            "--key-minimum must be below --key-maximum",
        ),
        (
            &["-n5", "--test-time=5"],
            "only one of --requests and --test-time",
        ),
        (
            &["-P", "memcache_text"],
            "protocol memcache_text is not supported",
        ),
        (
            &["--data-import=x"],
            "--data-import: importing data is not supported",
        ),
        (
            &["--no-expiry"],
            "--no-expiry: importing data is not supported",
        ),
        (
            &["--cluster-mode", "--monitor-input=x"],
            "--monitor-input is not supported in cluster mode",
        ),
        (
            &["--clients-start=1"],
            "--clients-start, --clients-step and --step-duration go together",
        ),
        (
            &[
                "-c4",
                "--clients-start=5",
                "--clients-step=1",
                "--step-duration=1",
            ],
            "--clients-start (5) must be less than --clients (4)",
        ),
        (
            &["--clients-start=1", "--clients-step=1", "--step-duration=1"],
            "--clients-start goes with --test-time",
        ),
        (
            &["--max-reconnect-attempts=3"],
            "--max-reconnect-attempts and --reconnect-backoff-factor go with --reconnect-on-error",
        ),
        (
            &["--wait-ratio=0:1"],
            "--wait-ratio is two numbers, the first of them above 0",
        ),
        (
            &["--num-slaves=1-2"],
            "--num-slaves and --wait-timeout go with --wait-ratio",
        ),
        (
            &[
                "--command=SCAN 0",
                "--scan-incremental-iteration",
                "--pipeline=2",
            ],
            "--scan-incremental-iteration requires --pipeline 1",
        ),
        (
            &["--command=SCAN 5", "--scan-incremental-iteration"],
            "--scan-incremental-iteration requires the command to be a SCAN command that begins at 0",
        ),
        (
            &["--scan-incremental-iteration"],
            "--scan-incremental-iteration requires exactly one --command (a SCAN command)",
        ),
        (
            &["--command=PING", "--data-verify"],
            "values can be verified only where SET stores them",
        ),
        (&["--monitor-pattern=X"], "--monitor-pattern is S or R"),
        (
            &["--data-size-range=20-10"],
            "--data-size-range must begin with the smaller number",
        ),
        (
            &["--data-size-pattern=S"],
            "--data-size-pattern belongs to --data-size-range",
        ),
        (
            &["--data-size-list=5"],
            "--data-size-list is sizes with weights, such as 32:80,1024:20",
        ),
        (
            &["-d5", "--data-size-list=5:1"],
            "only one of --data-size, --data-size-range and --data-size-list",
        ),
    ] {
        assert_eq!(refusal(arguments), why);
    }
}

#[test]
fn sizes_have_three_forms() {
    let sizes = |argument: &str| parsed(&[argument]).unwrap().data_sizes;
    assert_eq!(sizes("--data-size=7"), Sizes::Fixed(7));
    assert_eq!(sizes("--data-size-range=1-9"), Sizes::Range(1, 9));
    assert_eq!(
        sizes("--data-size-list=32:80,64:0,1024:20"),
        Sizes::Weighted(vec![(32, 80), (1024, 20)])
    );
}

#[test]
fn options_that_go_together_become_one() {
    let options = parsed(&[
        "-c9",
        "--test-time=60",
        "--clients-start=2",
        "--clients-step=3",
        "--step-duration=4",
        "--reconnect-on-error",
        "--max-reconnect-attempts=7",
        "--reconnect-backoff-factor=1.5",
        "--wait-ratio=3:1",
        "--num-slaves=1-2",
        "--wait-timeout=10-20",
        "--verify-only",
        "--statsd-host=s",
        "--statsd-run-label=l",
        "-4",
        "--tls",
        "--cert=c",
        "--key=k",
        "--cacert=a",
        "--tls-skip-verify",
        "--tls-protocols=TLSv1.3",
        "--sni=n",
        "--thread-conn-start-max-jitter-micros=5",
        "--connection-timeout=2",
        "-h",
        "example.org",
    ])
    .unwrap();
    let expected = Options {
        server: "example.org".to_owned(),
        clients: 9,
        test_seconds: Some(60),
        staircase: Some(Staircase {
            start: 2,
            step: 3,
            seconds: 4,
        }),
        reconnect: Some(Reconnect {
            attempts_max: 7,
            backoff: 1.5,
        }),
        wait: Some(WaitOption {
            sets: 3,
            waits: 1,
            replicas: (1, 2),
            timeout: (10, 20),
        }),
        verify: Verify::Only,
        statsd: Some(StatsdOptions {
            host: "s".to_owned(),
            port: 8125,
            prefix: "memtier".to_owned(),
            label: "l".to_owned(),
            graphite_port: 8080,
        }),
        family: Family::V4,
        tls: TlsSettings {
            enabled: true,
            server_name: Some("n".to_owned()),
            authorities: Some("a".into()),
            certificate: Some("c".into()),
            key: Some("k".into()),
            insecure: true,
            protocols: Some("TLSv1.3".to_owned()),
            ..TlsSettings::default()
        },
        start_jitter: (0, 5),
        connection_seconds_max: 2,
        ..Options::default()
    };
    assert_eq!(options, expected);
    let options = parsed(&[
        "--command=SCAN 0 COUNT 5",
        "--scan-incremental-iteration",
        "--scan-incremental-max-iterations=9",
        "--client-stats=p",
        "--hdr-file-prefix=q",
        "--show-config",
        "-u",
        "rediss://h:1",
    ])
    .unwrap();
    assert_eq!(options.scan_steps_max, Some(9));
    assert_eq!(options.client_stats, Some("p".into()));
    assert_eq!(options.hdr_prefix, Some("q".into()));
    assert!(options.show_config && options.tls.enabled);
    assert_eq!(parsed(&["-h"]), Err(Instead::Usage));
}
