//! Lists of processors, in the syntax of `taskset -c` and the `*-cpulist` parameters, and tying threads to them.

use std::io;

use rustix::thread::{CpuSet, sched_setaffinity};

/// Processors by number, at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuList(Vec<usize>);

impl CpuList {
    /// Reads `0-7:2,9`: numbers, ranges, and ranges with a step, separated by commas.
    ///
    /// # Errors
    /// What is wrong with the text, as a clause that can follow a colon.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut processors = Vec::new();
        for part in text.split(',') {
            let part = part.trim();
            let (range, step) = part.split_once(':').unwrap_or((part, "1"));
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let number = |word: &str| {
                word.trim().parse::<usize>().map_err(|_| {
                    format!("'{part}' is not a processor, a range such as 0-3, or a range with a step such as 0-7:2")
                })
            };
            let (first, last, step) = (number(first)?, number(last)?, number(step)?);
            if last < first {
                return Err(format!("the range '{part}' ends before it begins"));
            }
            if step == 0 {
                return Err(format!("the step of '{part}' is zero"));
            }
            if last >= CpuSet::MAX_CPU {
                return Err(format!(
                    "processor numbers end at {}, and '{part}' goes beyond",
                    CpuSet::MAX_CPU - 1
                ));
            }
            processors.extend((first..=last).step_by(step));
        }
        processors.sort_unstable();
        processors.dedup();
        Ok(Self(processors))
    }

    /// Ties the calling thread, and those it starts from now on, to these processors. Those the machine does not have are
    /// left out.
    ///
    /// # Errors
    /// Those of the system call; `EINVAL` if the machine has none of them.
    pub fn pin_thread(&self) -> io::Result<()> {
        let mut set = CpuSet::new();
        self.0.iter().for_each(|processor| set.set(*processor));
        Ok(sched_setaffinity(None, &set)?)
    }
}

#[cfg(test)]
mod tests {
    use rustix::thread::sched_getaffinity;

    use super::*;

    #[test]
    fn numbers_ranges_and_steps() {
        let list = |text| CpuList::parse(text).map(|list| list.0);
        assert_eq!(list("0"), Ok(vec![0]));
        assert_eq!(list("3,1-2"), Ok(vec![1, 2, 3]));
        assert_eq!(list("0-7:2"), Ok(vec![0, 2, 4, 6]));
        assert_eq!(list("1,1,0-1"), Ok(vec![0, 1]));
        assert_eq!(list(" 2 , 4-5 "), Ok(vec![2, 4, 5]));
    }

    #[test]
    fn anything_else_is_named() {
        let error = |text| CpuList::parse(text).unwrap_err();
        for text in ["", "a", "1-", "-1", "1;2", "1-2-3", "0-4:x"] {
            assert!(error(text).contains("is not a processor"), "{text}");
        }
        assert_eq!(error("3-1"), "the range '3-1' ends before it begins");
        assert_eq!(error("0-3:0"), "the step of '0-3:0' is zero");
        assert_eq!(
            error("5000"),
            "processor numbers end at 1023, and '5000' goes beyond"
        );
    }

    #[test]
    fn a_thread_stays_where_it_is_tied() {
        let allowed = sched_getaffinity(None).unwrap();
        let processor = (0..CpuSet::MAX_CPU)
            .find(|cpu| allowed.is_set(*cpu))
            .unwrap();
        std::thread::spawn(move || {
            CpuList(vec![processor]).pin_thread().unwrap();
            let now = sched_getaffinity(None).unwrap();
            assert!(now.count() == 1 && now.is_set(processor));
        })
        .join()
        .unwrap();
        assert_eq!(sched_getaffinity(None).unwrap(), allowed);
    }

    #[test]
    fn processors_that_do_not_exist_are_an_error() {
        assert!(CpuList(vec![1023]).pin_thread().is_err());
    }
}
