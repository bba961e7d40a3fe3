//! PFSELFTEST: registers keep what is written to them, both forms say the same, and estimates are as good as the method promises.

use super::{
    REGISTERS, count, dense, empty, make_dense, observe, raise_dense, registers, with_observations,
};

/// Rounds of random registers.
const ROUNDS: u64 = 100;
/// The elements that estimates are tried with.
const ELEMENTS: u64 = 1_000_000;
/// The sparse form is followed up to here.
const SPARSE_ELEMENTS: u64 = 1_000;
/// How far an estimate may be off, in standard errors.
const ERRORS_MAX: f64 = 6.0;

/// The test on its way.
#[derive(Debug)]
pub struct SelfTest {
    random: u64,
    round: u64,
    element: u64,
    checkpoint: u64,
    dense: Vec<u8>,
    sparse: Vec<u8>,
}

impl Default for SelfTest {
    fn default() -> Self {
        let (mut dense, sparse) = (empty(), empty());
        let made = make_dense(&mut dense);
        debug_assert!(made.is_ok(), "an empty value is whole");
        Self {
            random: 0x9e37_79b9_7f4a_7c15,
            round: 0,
            element: 0,
            checkpoint: 1,
            dense,
            sparse,
        }
    }
}

impl SelfTest {
    /// Adds up to `elements` more elements, or writes all registers once. Whether there is more to do.
    ///
    /// # Errors
    /// What is wrong.
    pub fn step(&mut self, elements: u64) -> Result<bool, String> {
        if self.round < ROUNDS {
            self.round += 1;
            self.registers_keep_what_is_written()?;
            return Ok(true);
        }
        let end = self.element.saturating_add(elements).min(ELEMENTS);
        while self.element < end {
            self.element += 1;
            self.add()?;
            if self.element == self.checkpoint {
                self.checkpoint *= 10;
                self.estimate_is_good()?;
            }
        }
        Ok(self.element < ELEMENTS)
    }

    fn registers_keep_what_is_written(&mut self) -> Result<(), String> {
        let mut expected = [0; REGISTERS];
        let mut bytes = vec![0; dense::BYTES];
        for (register, rank) in expected.iter_mut().enumerate() {
            // An xorshift generator (Marsaglia).
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            *rank = self.random as u8 & dense::MAX;
            dense::set(&mut bytes, register, *rank);
        }
        for (register, expected) in expected.iter().enumerate() {
            let found = dense::register(&bytes, register);
            if found != *expected {
                return Err(format!(
                    "Register {register} should be {expected} but is {found}"
                ));
            }
        }
        Ok(())
    }

    fn add(&mut self) -> Result<(), String> {
        let observation = observe(&self.element.to_le_bytes());
        raise_dense(&mut self.dense, observation);
        if self.element <= SPARSE_ELEMENTS {
            let added = with_observations(&self.sparse, [observation], usize::MAX);
            if let Some(added) = added {
                self.sparse = added.bytes;
            }
        }
        Ok(())
    }

    fn estimate_is_good(&self) -> Result<(), String> {
        let corrupted = |error: super::Corrupted| error.to_string();
        let exact = self.element;
        let estimate = count(&self.dense).map_err(corrupted)?;
        if exact <= SPARSE_ELEMENTS {
            let sparse = registers(&self.sparse).map_err(corrupted)?;
            if sparse != registers(&self.dense).map_err(corrupted)? {
                return Err("Sparse and dense registers differ".to_owned());
            }
        }
        let error = 1.04 / (REGISTERS as f64).sqrt();
        let most = (error * ERRORS_MAX * exact as f64).ceil();
        if exact.abs_diff(estimate) as f64 > most {
            return Err(format!(
                "Too big error. card:{exact} estimate:{estimate} most:{most}"
            ));
        }
        Ok(())
    }
}
