//! redis-rs against a running server, in RESP2 and RESP3: synchronous, multiplexed, and with a connection manager.
//!
//! Usage: weft-clients-redis-rs PORT SOCKET. Prints one line per check that passed; the first one that does not ends the run.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::fmt::Debug;
use std::process::exit;

use redis::{
    AsyncCommands, Client, Commands, Connection, ExistenceCheck, RedisResult, SetExpiry,
    SetOptions, Value,
};

fn check<T: PartialEq + Debug>(name: &str, found: RedisResult<T>, expected: T) {
    match found {
        Ok(found) if found == expected => println!("ok {name}"),
        other => fail(name, &format!("{other:?} instead of {expected:?}")),
    }
}

fn refused<T: Debug>(name: &str, found: RedisResult<T>, code: &str, detail: &str) {
    match found {
        Err(error) if error.code() == Some(code) && error.detail() == Some(detail) => {
            println!("ok {name}");
        }
        other => fail(name, &format!("{other:?} instead of {code} {detail}")),
    }
}

fn fail(name: &str, what: &str) -> ! {
    eprintln!("redis-rs: {name}: {what}");
    exit(1);
}

fn texts<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

fn commands(said: &str, client: &mut Connection) -> RedisResult<()> {
    let name = |what: &str| format!("{said} {what}");
    check(&name("flush"), client.flushall(), "OK".to_owned());
    check(&name("ping"), client.ping(), "PONG".to_owned());
    check(
        &name("set"),
        client.set("greeting", "hello"),
        "OK".to_owned(),
    );
    check(&name("get"), client.get("greeting"), "hello".to_owned());
    check(
        &name("get of nothing"),
        client.get("nothing"),
        None::<String>,
    );
    let bytes: Vec<u8> = (0..=255).collect();
    let () = client.set("binary", &bytes)?;
    check(&name("binary value"), client.get("binary"), bytes);
    let options = SetOptions::default()
        .conditional_set(ExistenceCheck::NX)
        .with_expiration(SetExpiry::EX(10));
    check(
        &name("set nx"),
        client.set_options("greeting", "again", options),
        None::<String>,
    );
    check(
        &name("set_ex"),
        client.set_ex("short", "x", 100),
        "OK".to_owned(),
    );
    check(&name("ttl"), client.ttl("short"), 100);
    check(
        &name("mset"),
        client.mset(&[("a", 1), ("b", 2)]),
        "OK".to_owned(),
    );
    check(
        &name("mget"),
        client.mget(&["a", "nothing", "b"]),
        vec![Some(1), None, Some(2)],
    );
    check(&name("incr"), client.incr("count", 42), 42);
    check(
        &name("incr by a fraction"),
        client.incr("float", 10.5),
        10.5,
    );
    check(&name("append"), client.append("text", "abc"), 3);
    check(
        &name("getrange"),
        client.getrange("text", 1, 2),
        "bc".to_owned(),
    );
    check(&name("get_del"), client.get_del("text"), "abc".to_owned());
    check(&name("exists"), client.exists("text"), false);
    check(&name("del"), client.del(&["a", "b", "nothing"]), 2);
    let mut pipe = redis::pipe();
    for number in 0..1000 {
        pipe.set(format!("key:{number}"), number).ignore();
    }
    for number in 0..1000 {
        pipe.get(format!("key:{number}"));
    }
    check(
        &name("pipeline"),
        pipe.query(client),
        (0..1000).collect::<Vec<i32>>(),
    );
    let found: RedisResult<Vec<String>> = client.scan_match("key:99?")?.collect();
    let sorted = found.map(|mut keys| {
        keys.sort();
        keys.dedup();
        keys
    });
    let expected = (990..1000).map(|number| format!("key:{number}")).collect();
    check(&name("scan"), sorted, expected);
    refused(
        &name("error"),
        client.incr::<_, _, Value>("greeting", 1),
        "ERR",
        "value is not an integer or out of range",
    );
    let words = redis::cmd("CONFIG")
        .arg("GET")
        .arg("maxmemory-samples")
        .query(client);
    let expected = HashMap::from([("maxmemory-samples".to_owned(), 5)]);
    check(&name("map"), words, expected);
    Ok(())
}

fn handshakes(said: &str, protocol: &str, port: &str, socket: &str) -> RedisResult<()> {
    let name = |what: &str| format!("{said} {what}");
    let mut client = Client::open(format!("redis+unix://{socket}?db=2&protocol={protocol}"))?
        .get_connection()?;
    check(&name("unix socket"), client.set("here", 2), "OK".to_owned());
    let () = redis::cmd("CONFIG")
        .arg("SET")
        .arg("requirepass")
        .arg("secret")
        .query(&mut client)?;
    let open = |credentials: &str| {
        Client::open(format!(
            "redis://{credentials}127.0.0.1:{port}/2?protocol={protocol}"
        ))?
        .get_connection()
    };
    let known = open(":secret@").and_then(|mut known| known.get("here"));
    let named = open("default:secret@").and_then(|mut known| known.get_del("here"));
    let wrong = open(":wrong@").and_then(|mut unknown| unknown.get::<_, Value>("here"));
    let () = redis::cmd("CONFIG")
        .arg("SET")
        .arg("requirepass")
        .arg("")
        .query(&mut client)?;
    check(&name("password"), known, 2);
    check(&name("user and password"), named, 2);
    match wrong {
        Err(error) if error.to_string().contains("Password authentication failed") => {
            println!("ok {}", name("wrong password"));
        }
        Err(error) if error.code() == Some("WRONGPASS") => {
            println!("ok {}", name("wrong password"));
        }
        other => fail(&name("wrong password"), &format!("{other:?}")),
    }
    Ok(())
}

async fn asynchronous(said: &str, url: &str) -> RedisResult<()> {
    let name = |what: &str| format!("{said} {what}");
    let client = Client::open(url)?;
    let connection = client.get_multiplexed_async_connection().await?;
    let tasks: Vec<_> = (0..500)
        .map(|_| {
            let mut connection = connection.clone();
            tokio::spawn(async move { connection.incr::<_, _, i64>("shared", 1).await })
        })
        .collect();
    let mut counted = Vec::new();
    for task in tasks {
        match task.await {
            Ok(reply) => counted.push(reply?),
            Err(error) => fail(&name("multiplexed"), &error.to_string()),
        }
    }
    counted.sort_unstable();
    check(
        &name("500 at once on one connection"),
        Ok(counted),
        (1..=500).collect(),
    );
    let mut connection = connection;
    check(
        &name("set"),
        connection.set("greeting", "hello").await,
        "OK".to_owned(),
    );
    let found: Vec<Option<String>> = connection.mget(&["greeting", "nothing"]).await?;
    check(
        &name("mget"),
        Ok(found),
        vec![Some("hello".to_owned()), None],
    );
    let found = redis::pipe()
        .incr("piped", 1)
        .incr("piped", 1)
        .get("greeting")
        .query_async(&mut connection)
        .await;
    check(&name("pipeline"), found, (1, 2, "hello".to_owned()));
    refused(
        &name("error"),
        connection.incr::<_, _, Value>("greeting", 1).await,
        "ERR",
        "value is not an integer or out of range",
    );
    let mut manager = client.get_connection_manager().await?;
    check(
        &name("connection manager"),
        manager.get("greeting").await,
        "hello".to_owned(),
    );
    let keys: Vec<String> = manager.keys("gree*").await?;
    check(&name("keys"), Ok(keys), texts(["greeting"]));
    Ok(())
}

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, port, socket] = words.as_slice() else {
        fail("usage", "PORT SOCKET");
    };
    for protocol in ["resp2", "resp3"] {
        let url = format!("redis://127.0.0.1:{port}/?protocol={protocol}");
        let synchronous = Client::open(url.as_str())
            .and_then(|client| client.get_connection())
            .and_then(|mut client| commands(protocol, &mut client))
            .and_then(|()| handshakes(protocol, protocol, port, socket));
        if let Err(error) = synchronous {
            fail(protocol, &error.to_string());
        }
        let said = format!("{protocol}, asynchronous:");
        if let Err(error) = asynchronous(&said, &url).await {
            fail(&said, &error.to_string());
        }
    }
}
