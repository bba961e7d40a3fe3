//! Random numbers that are not spread evenly.
//!
//! Owns the normal and the Zipf distribution. Knows no keys.

use fastrand::Rng;

/// A number of the standard normal distribution, after Box and Muller.
pub fn normal(random: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

/// Ranks from 1 to a maximum with probabilities like `rank.powf(-exponent)`, by rejection inversion (Hörmann and Derflinger,
/// "Rejection-inversion to generate variates from monotone discrete distributions", 1996): no table, whatever the maximum.
#[derive(Clone, Debug)]
pub struct Zipf {
    count: f64,
    exponent: f64,
    /// The integral from 1.5 less the weight of rank 1, and up to half a rank behind the last.
    low: f64,
    high: f64,
    /// Below this distance a rank is taken without a look at its weight.
    sure: f64,
}

impl Zipf {
    /// Ranks from 1 to `count`, which is at least 1.
    pub fn new(count: u64, exponent: f64) -> Zipf {
        let mut zipf = Zipf {
            count: count as f64,
            exponent,
            low: 0.0,
            high: 0.0,
            sure: 0.0,
        };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.count + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    fn weight(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    /// The integral of the weights from 1 to `x`.
    fn integral(&self, x: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest == 0.0 {
            x.ln()
        } else {
            // Exact for exponents near 1 too.
            (rest * x.ln()).exp_m1() / rest
        }
    }

    /// Where the integral is `y`.
    fn inverse(&self, y: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest == 0.0 {
            y.exp()
        } else {
            ((y * rest).ln_1p() / rest).exp()
        }
    }

    /// Draws one.
    #[inline]
    pub fn rank(&self, random: &mut Rng) -> u64 {
        loop {
            let y = self.high + random.f64() * (self.low - self.high);
            let x = self.inverse(y);
            let rank = x.round().clamp(1.0, self.count);
            if rank - x <= self.sure || y >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64;
            }
        }
    }
}
