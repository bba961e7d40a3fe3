//! Both drop-in modes over TLS, against a server that wants a certificate of its clients.
//!
//! The certificates in the folder `tls` are for these tests only: an authority whose key is gone, a server that is called
//! `server.example`, and a client.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::native_server::{Store, serve};
use crate::program::{Ended, PROGRAM, run};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/integration/tls")
        .join(name)
}

fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(path(name)).unwrap()
}

/// What a connection's handshake came to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Met {
    version: String,
    cipher: String,
    server_name: Option<String>,
}

struct Server {
    port: u16,
    met: Arc<Mutex<Vec<Met>>>,
}

impl Server {
    fn start() -> Server {
        let mut authorities = RootCertStore::empty();
        authorities.add(certificate("authority.crt")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(
            Arc::new(authorities),
            Arc::clone(&provider),
        )
        .build()
        .unwrap();
        let key = PrivateKeyDer::from_pem_file(path("server.key")).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate("server.crt")], key)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let met = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&met);
        let store = Arc::new(Store::default());
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                stream.set_nodelay(true).unwrap();
                let (config, log, store) =
                    (Arc::clone(&config), Arc::clone(&log), Arc::clone(&store));
                thread::spawn(move || {
                    let mut tls = ServerConnection::new(config).unwrap();
                    while tls.is_handshaking() {
                        if tls.complete_io(&mut stream).is_err() {
                            return;
                        }
                    }
                    log.lock().unwrap().push(Met {
                        version: format!("{:?}", tls.protocol_version().unwrap()),
                        cipher: format!("{:?}", tls.negotiated_cipher_suite().unwrap().suite()),
                        server_name: tls.server_name().map(str::to_owned),
                    });
                    let mut stream = StreamOwned::new(tls, stream);
                    serve(&mut stream, |words| Some(store.answer(words)));
                });
            }
        });
        Server { port, met }
    }

    fn run(&self, mode: &str, arguments: &[&str]) -> Ended {
        let mut command = std::process::Command::new(PROGRAM);
        command
            .args([mode, "-p", &self.port.to_string(), "--tls"])
            .args(arguments);
        run(command, "")
    }

    fn met(&self) -> Vec<Met> {
        self.met.lock().unwrap().clone()
    }
}

/// The options that name the files, as both modes have them.
fn files() -> [String; 6] {
    let file = |name: &str| path(name).display().to_string();
    [
        "--cacert".to_owned(),
        file("authority.crt"),
        "--cert".to_owned(),
        file("client.crt"),
        "--key".to_owned(),
        file("client.key"),
    ]
}

fn with_files<'a>(files: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    let files = files.iter().map(String::as_str);
    files.chain(more.iter().copied()).collect()
}

#[test]
fn redis_benchmark_measures_over_tls() {
    let server = Server::start();
    let files = files();
    // Values longer than a record, several requests in one.
    for more in [
        &["-n", "200", "-c", "5", "-t", "set,get", "--csv"][..],
        &[
            "-n", "64", "-c", "2", "-t", "set,get", "--csv", "-P", "16", "-d", "50000",
        ],
    ] {
        let ended = server.run("redis-benchmark", &with_files(&files, more));
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        let tests: Vec<&str> = ended
            .output
            .lines()
            .map(|line| line.split(',').next().unwrap())
            .collect();
        assert_eq!(tests, ["\"test\"", "\"SET\"", "\"GET\""]);
    }
    let met = server.met();
    // Twice the questions beforehand, and each test's connections.
    assert_eq!(met.len(), 2 + 2 * 5 + 2 * 2);
    assert!(
        met.iter()
            .all(|met| met.version == "TLSv1_3" && met.server_name.is_none())
    );
}

#[test]
fn connections_are_encrypted_anew() {
    let server = Server::start();
    let files = files();
    let more = ["-n", "12", "-c", "2", "-t", "ping_mbulk", "-q", "-k", "0"];
    let ended = server.run("redis-benchmark", &with_files(&files, &more));
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert_eq!(server.met().len(), 1 + 12);
}

#[test]
fn names_and_ciphers_are_asked_for() {
    let server = Server::start();
    let files = files();
    let more = [
        "-n",
        "2",
        "-c",
        "1",
        "-t",
        "get",
        "-q",
        "--sni",
        "server.example",
        "--tls-ciphersuites",
        "TLS_AES_128_GCM_SHA256",
    ];
    let ended = server.run("redis-benchmark", &with_files(&files, &more));
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let expected = Met {
        version: "TLSv1_3".to_owned(),
        cipher: "TLS13_AES_128_GCM_SHA256".to_owned(),
        server_name: Some("server.example".to_owned()),
    };
    assert_eq!(server.met(), [expected.clone(), expected]);
}

#[test]
fn strangers_are_refused() {
    let server = Server::start();
    let files = files();
    // No authority that is known vouches for the server.
    let unknown = server.run(
        "redis-benchmark",
        &["-n", "2", "-t", "get", "--cacert", &files[3]],
    );
    assert_eq!(unknown.code, Some(1));
    assert!(
        unknown
            .errors
            .contains("SSL_connect failed: invalid peer certificate"),
        "{}",
        unknown.errors
    );
    let insecure = ["--insecure", "-n", "2", "-t", "get", "-q"];
    let trusted = server.run("redis-benchmark", &with_files(&files[2..], &insecure));
    assert_eq!(trusted.code, Some(0), "{}", trusted.errors);
    // The server does not know the client.
    let nobody = server.run("memtier", &["-n", "2", "-c1", "-t1", "--cacert", &files[1]]);
    assert_eq!(nobody.code, Some(1));
    assert!(
        nobody.errors.contains("SSL_connect failed"),
        "{}",
        nobody.errors
    );
}

#[test]
fn memtier_measures_over_tls() {
    let server = Server::start();
    let files = files();
    let more = [
        "-c2",
        "-t2",
        "-n",
        "allkeys",
        "--key-pattern=P:P",
        "--key-minimum=1",
        "--key-maximum=100",
        "--ratio=1:0",
        "--tls-protocols=TLSv1.2",
        "--data-verify",
        "--hide-histogram",
    ];
    let ended = server.run("memtier", &with_files(&files, &more));
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert!(
        ended.errors.ends_with(
            "Data verification completed: 100 keys verified successfully, 0 absent, 0 with errors\n"
        ),
        "{}",
        ended.errors
    );
    let met = server.met();
    assert_eq!(met.len(), 1 + 4 + 1);
    assert!(met.iter().all(|met| met.version == "TLSv1_2"));
}
