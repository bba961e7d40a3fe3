//! How the bytes of requests reach a server: what a client's packets may look like must never change a reply.

use crate::door::DoorSession;
use crate::error::KitError;

/// A way of sending requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// One request at a time, each waiting for the reply of the one before.
    Single,
    /// Many requests in one write.
    Pipeline,
    /// Many requests, cut at random places that have nothing to do with their bounds.
    Split,
    /// Byte by byte.
    Bytes,
    /// Between MULTI and EXEC.
    Transaction,
}

/// Pieces that a batch is cut into at most, so that large values stay cheap.
const PIECES_MAX: usize = 64;
/// A batch longer than this is cut at random instead of into single bytes.
const SINGLE_BYTES_MAX: usize = 1024;

impl Delivery {
    /// All ways.
    pub const ALL: [Delivery; 5] = [
        Delivery::Single,
        Delivery::Pipeline,
        Delivery::Split,
        Delivery::Bytes,
        Delivery::Transaction,
    ];

    /// What it is called in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Delivery::Single => "single",
            Delivery::Pipeline => "pipeline",
            Delivery::Split => "split",
            Delivery::Bytes => "bytes",
            Delivery::Transaction => "transaction",
        }
    }

    /// The way of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|delivery| delivery.name() == name)
    }

    /// Requests sent before their replies are read.
    pub fn batch_length(self) -> usize {
        match self {
            Delivery::Single => 1,
            Delivery::Pipeline => 100,
            Delivery::Split => 20,
            Delivery::Bytes => 4,
            Delivery::Transaction => 5,
        }
    }

    /// The lengths of the pieces that `length` bytes are sent in.
    pub fn pieces(self, length: usize, random: &mut fastrand::Rng) -> Vec<usize> {
        let cut_randomly = |random: &mut fastrand::Rng| {
            let mut cuts: Vec<usize> = (0..random.usize(1..PIECES_MAX))
                .map(|_| random.usize(..=length))
                .collect();
            cuts.push(length);
            cuts.sort_unstable();
            let mut last = 0;
            cuts.into_iter()
                .map(|cut| cut - std::mem::replace(&mut last, cut))
                .filter(|piece| *piece > 0)
                .collect()
        };
        match self {
            Delivery::Single | Delivery::Pipeline | Delivery::Transaction => vec![length],
            Delivery::Bytes if length <= SINGLE_BYTES_MAX => vec![1; length],
            Delivery::Split | Delivery::Bytes => cut_randomly(random),
        }
    }

    /// Sends `bytes` this way.
    pub fn send(
        self,
        server: &mut dyn DoorSession,
        bytes: &[u8],
        random: &mut fastrand::Rng,
    ) -> Result<(), KitError> {
        let mut rest = bytes;
        for piece in self.pieces(bytes.len(), random) {
            let (now, later) = rest.split_at(piece);
            server.send(now)?;
            rest = later;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_are_the_whole() {
        let mut random = fastrand::Rng::with_seed(1);
        for delivery in Delivery::ALL {
            for length in [1, 2, 100, 5000] {
                let pieces = delivery.pieces(length, &mut random);
                assert_eq!(pieces.iter().sum::<usize>(), length);
                assert!(pieces.iter().all(|piece| *piece > 0));
            }
        }
        assert_eq!(Delivery::Bytes.pieces(3, &mut random), [1, 1, 1]);
    }
}
