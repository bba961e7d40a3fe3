//! What the registers say: Otmar Ertl's improved raw estimator ("New cardinality estimation algorithms for HyperLogLog sketches",
//! 2017, section 2), which needs neither tables nor a correction for bias.

use super::REGISTERS;

/// The highest rank plus one: that many bits of the hash are left beside the register's, and the bit that ends the count.
const RANKS: usize = 52;

/// How many registers hold each rank.
pub(super) type Histogram = [u32; 64];

/// 1 / (2 ln 2), with the digits of Redis.
const ALPHA_INFINITE: f64 = 0.721_347_520_444_481_7;

/// The estimate, rounded.
pub(super) fn count(histogram: &Histogram) -> u64 {
    let all = REGISTERS as f64;
    let highest = RANKS - 1;
    let mut sum = all * tau((all - f64::from(histogram[highest])) / all);
    for with_rank in histogram[1..highest].iter().rev() {
        sum += f64::from(*with_rank);
        sum *= 0.5;
    }
    sum += all * sigma(f64::from(histogram[0]) / all);
    (ALPHA_INFINITE * all * all / sum).round() as u64
}

/// x + x^2 * 1 + x^4 * 2 + x^8 * 4 + ...
fn sigma(mut x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut factor, mut sum) = (1.0, x);
    loop {
        x *= x;
        let before = sum;
        sum += x * factor;
        factor += factor;
        if sum == before {
            return sum;
        }
    }
}

/// (1 - x - (1 - x^1/2)^2 / 2 - (1 - x^1/4)^2 / 4 - ...) / 3
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut factor, mut sum) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = sum;
        factor *= 0.5;
        sum -= (1.0 - x) * (1.0 - x) * factor;
        if sum == before {
            return sum / 3.0;
        }
    }
}
