//! What a server says about itself in INFO.
//!
//! Owns the names of the fields: Redis's own, and those of the five steps of a request that Weft adds to the section
//! `threads`. A field that a server does not have is `None`, never a guess.

use weft_client::{Connection, Reply};

/// The steps of a request, in their order.
pub const STEPS: [&str; 5] = ["read", "parse", "execute", "encode", "write"];

/// Microseconds in each of the [`STEPS`], all workers together.
pub type Steps = [u64; 5];

/// A server's words about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Name and version, such as "redis 8.2.3" or "weft 0.1.0".
    pub version: Option<String>,
    /// The process, in the server's own view.
    pub process: Option<u32>,
    /// Time in the steps so far.
    pub steps: Option<Steps>,
    /// Seconds of processor time so far.
    pub cpu_seconds: Option<f64>,
}

impl Facts {
    /// Asks for them.
    ///
    /// # Errors
    /// That the connection broke. What the server refuses to tell stays unknown.
    pub fn ask(connection: &mut Connection) -> Result<Facts, String> {
        let mut text = String::new();
        for section in ["server", "cpu", "threads"] {
            match connection.command(&["INFO", section]) {
                Ok(Reply::Bulk(bytes)) => {
                    text.push_str(&String::from_utf8_lossy(&bytes));
                    text.push('\n');
                }
                Ok(_) => {}
                Err(error) => return Err(format!("cannot be asked for INFO: {error}")),
            }
        }
        Ok(Facts::read(&text))
    }

    fn read(text: &str) -> Facts {
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(str::trim)
        };
        let seconds = |name| field(name)?.parse::<f64>().ok();
        // The others tell redis_version too, for clients that know no other name.
        let named = ["weft", "valkey", "redis"].into_iter();
        let version = named
            .filter_map(|name| Some(format!("{name} {}", field(&format!("{name}_version"))?)))
            .next();
        Facts {
            version,
            process: field("process_id").and_then(|id| id.parse().ok()),
            steps: steps(text),
            cpu_seconds: seconds("used_cpu_user")
                .zip(seconds("used_cpu_sys"))
                .map(|(user, kernel)| user + kernel),
        }
    }
}

/// The sums over the lines `weft_worker_K:...,read_us=...,parse_us=...`.
fn steps(text: &str) -> Option<Steps> {
    let mut sums = None;
    for line in text.lines() {
        let Some((_, fields)) = line
            .strip_prefix("weft_worker_")
            .and_then(|rest| rest.split_once(':'))
        else {
            continue;
        };
        let sums = sums.get_or_insert([0; 5]);
        for (name, value) in fields.split(',').filter_map(|field| field.split_once('=')) {
            let place = name
                .strip_suffix("_us")
                .and_then(|name| STEPS.iter().position(|step| *step == name));
            if let (Some(place), Ok(us)) = (place, value.trim().parse::<u64>()) {
                sums[place] += us;
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_summed_over_workers() {
        let text = "# Server\r\nredis_version:7.2.4\r\nweft_version:0.1.0\r\nprocess_id:4711\r\n\
            # CPU\r\nused_cpu_sys:1.250000\r\nused_cpu_user:0.500000\r\n# Threads\r\nio_thread_0:clients=1,reads=2,writes=3\r\n\
            weft_worker_0:busy_percent=1.50,read_us=1,parse_us=2,execute_us=3,encode_us=4,write_us=5,idle_us=100,longest_turn_us=9,loops=7,batch=1.00\r\n\
            weft_worker_1:busy_percent=1.50,read_us=10,parse_us=20,execute_us=30,encode_us=40,write_us=50,idle_us=1,longest_turn_us=9,loops=7,batch=1.00\r\n\
            bottleneck_step:write\r\n";
        assert_eq!(
            Facts::read(text),
            Facts {
                version: Some("weft 0.1.0".to_owned()),
                process: Some(4711),
                steps: Some([11, 22, 33, 44, 55]),
                cpu_seconds: Some(1.75),
            }
        );
    }

    #[test]
    fn others_have_versions_and_no_steps() {
        let version = |text| Facts::read(text).version;
        let text = "redis_version:7.2.4\nserver_name:valkey\nvalkey_version:9.1.2\n";
        assert_eq!(version(text).as_deref(), Some("valkey 9.1.2"));
        assert_eq!(
            version("redis_version:8.2.3\r\n").as_deref(),
            Some("redis 8.2.3")
        );
        assert_eq!(Facts::read("hello"), Facts::default());
    }
}
