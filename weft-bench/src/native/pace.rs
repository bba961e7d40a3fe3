//! When requests are due.
//!
//! Owns the arrivals of one connection in an open loop. They depend on nothing but the rate and the seed: an answer that
//! comes late delays none. Invariant: times only grow.

use std::time::Duration;

use fastrand::Rng;

/// What makes a connection send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// The answer to what was sent before.
    Closed {
        /// What passes in between.
        think: Think,
    },
    /// The clock.
    Open {
        /// Requests (or units) per second, of all connections together.
        rate: f64,
        /// How they are spread.
        arrivals: Arrivals,
    },
    /// The clock, and each request has a connection of its own, which is closed after the answer.
    Storm {
        /// Connections per second.
        rate: f64,
        /// How they are spread.
        arrivals: Arrivals,
    },
}

/// How requests are spread over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// The same time passes between any two.
    Constant,
    /// The time between two has an exponential distribution.
    Poisson,
}

/// What passes between an answer and the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Think {
    /// Nothing.
    None,
    /// The same time always.
    Fixed(Duration),
    /// A time with an exponential distribution of this mean.
    Exponential(Duration),
}

impl Think {
    /// Draws a time, in nanoseconds.
    pub fn draw(&self, random: &mut Rng) -> u64 {
        match self {
            Think::None => 0,
            Think::Fixed(time) => time.as_nanos() as u64,
            Think::Exponential(mean) => (exponential(random) * mean.as_nanos() as f64) as u64,
        }
    }
}

/// A number of the exponential distribution with mean 1.
fn exponential(random: &mut Rng) -> f64 {
    -(1.0 - random.f64()).ln()
}

/// The arrivals of one connection.
#[derive(Clone, Debug)]
pub struct Schedule {
    arrivals: Arrivals,
    random: Rng,
    start_ns: u64,
    mean_ns: f64,
    /// Nanoseconds from the start to the next one.
    offset_ns: f64,
    /// Arrivals of a constant rate are counted, so that no rounding adds up.
    passed: u64,
    /// Where in the first interval the first one lies, from 0 to 1.
    phase: f64,
}

/// So many arrivals are counted one by one; more are estimated.
const COUNTED_MAX: u64 = 1_000_000;

impl Schedule {
    /// The arrivals of connection `connection` of `connections` that have `rate` arrivals per second together. Those of a
    /// constant rate are evenly spread over all connections.
    pub fn new(
        arrivals: Arrivals,
        rate: f64,
        connection: usize,
        connections: usize,
        random: Rng,
    ) -> Schedule {
        Schedule {
            arrivals,
            random,
            start_ns: 0,
            mean_ns: connections as f64 / rate * 1e9,
            offset_ns: 0.0,
            passed: 0,
            phase: connection as f64 / connections as f64,
        }
    }

    /// Time begins.
    pub fn start(&mut self, now_ns: u64) {
        self.start_ns = now_ns;
        self.offset_ns = match self.arrivals {
            Arrivals::Constant => self.phase * self.mean_ns,
            Arrivals::Poisson => exponential(&mut self.random) * self.mean_ns,
        };
    }

    /// When the next one is due.
    pub fn next_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.offset_ns as u64)
    }

    /// The next one has come.
    pub fn pass(&mut self) {
        self.passed += 1;
        self.offset_ns = match self.arrivals {
            Arrivals::Constant => (self.passed as f64 + self.phase) * self.mean_ns,
            Arrivals::Poisson => self.offset_ns + exponential(&mut self.random) * self.mean_ns,
        };
    }

    /// How many there are before `end_ns` that have not passed.
    pub fn before(&self, end_ns: u64) -> u64 {
        let mut schedule = self.clone();
        let mut count = 0;
        while schedule.next_ns() < end_ns {
            if count == COUNTED_MAX {
                let left_ns = end_ns - schedule.next_ns();
                return count + (left_ns as f64 / schedule.mean_ns) as u64;
            }
            schedule.pass();
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrivals: Arrivals, connection: usize, count: usize) -> Vec<u64> {
        let mut schedule = Schedule::new(arrivals, 1000.0, connection, 4, Rng::with_seed(1));
        schedule.start(5);
        std::iter::repeat_with(|| {
            let next_ns = schedule.next_ns();
            schedule.pass();
            next_ns
        })
        .take(count)
        .collect()
    }

    #[test]
    fn a_constant_rate_is_spread_over_the_connections() {
        assert_eq!(times(Arrivals::Constant, 0, 3), [5, 4_000_005, 8_000_005]);
        assert_eq!(
            times(Arrivals::Constant, 3, 3),
            [3_000_005, 7_000_005, 11_000_005]
        );
        let schedule = {
            let mut schedule = Schedule::new(Arrivals::Constant, 1000.0, 1, 4, Rng::with_seed(1));
            schedule.start(0);
            schedule
        };
        assert_eq!(schedule.before(1_000_000_000), 250);
        assert_eq!(schedule.before(1_000_001), 1);
        assert_eq!(schedule.before(1_000_000), 0);
    }

    #[test]
    fn the_gaps_of_poisson_arrivals_are_exponential() {
        const COUNT: usize = 100_000;
        let times = times(Arrivals::Poisson, 0, COUNT + 1);
        // Ten cells of the same probability.
        let mut cells = [0_u32; 10];
        for pair in times.windows(2) {
            let gap = (pair[1] - pair[0]) as f64 / 4e6;
            let share = 1.0 - (-gap).exp();
            cells[(share * 10.0).min(9.0) as usize] += 1;
        }
        let expected = COUNT as f64 / 10.0;
        let chi_square: f64 = cells
            .iter()
            .map(|&count| (f64::from(count) - expected).powi(2) / expected)
            .sum();
        // 99.9 % of all draws are below this with 9 degrees of freedom.
        assert!(chi_square < 27.9, "{chi_square}: {cells:?}");
        let mean = (times[COUNT] - times[0]) as f64 / COUNT as f64;
        assert!((mean / 4e6 - 1.0).abs() < 0.02, "{mean}");
    }

    #[test]
    fn thinking_takes_the_time_it_should() {
        let random = &mut Rng::with_seed(1);
        assert_eq!(Think::None.draw(random), 0);
        assert_eq!(
            Think::Fixed(Duration::from_millis(3)).draw(random),
            3_000_000
        );
        let think = Think::Exponential(Duration::from_millis(1));
        let sum: u64 = (0..20_000).map(|_| think.draw(random)).sum();
        assert!((sum as f64 / 2e10 - 1.0).abs() < 0.03);
    }
}
