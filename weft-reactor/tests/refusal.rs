//! Kernels and profiles that refuse io_uring, played by a filter for the system calls of one thread.

use std::io;
use std::thread;

use weft_reactor::{DriverOptions, UringDriver};

/// Numbers of the three calls, the same on every architecture.
const SETUP: u32 = 425;
const ENTER: u32 = 426;
const REGISTER: u32 = 427;

#[test]
fn a_refusal_says_why() {
    UringDriver::probe().unwrap();
    let cases = [
        (
            SETUP,
            libc::EPERM,
            "io_uring: it is forbidden here (sysctl kernel.io_uring_disabled, or a seccomp profile): Operation not permitted (os error 1)",
        ),
        (
            SETUP,
            libc::ENOSYS,
            "io_uring: this kernel has none, or a seccomp profile hides it: Function not implemented (os error 38)",
        ),
        (
            SETUP,
            libc::EINVAL,
            "io_uring: this kernel is too old for it: Linux 6.1 is needed: Invalid argument (os error 22)",
        ),
        (
            REGISTER,
            libc::EINVAL,
            "io_uring: this kernel has no list of its operations: Invalid argument (os error 22)",
        ),
        (
            ENTER,
            libc::EPERM,
            "io_uring: it is forbidden here (sysctl kernel.io_uring_disabled, or a seccomp profile): Operation not permitted (os error 1)",
        ),
    ];
    for (call, errno, expected) in cases {
        // The filter ends with its thread.
        let refused = thread::spawn(move || {
            forbid(call, errno).unwrap();
            let error = UringDriver::probe().unwrap_err();
            let other = UringDriver::new(DriverOptions::default()).err().unwrap();
            assert_eq!(error.to_string(), other.to_string());
            (error.kind(), error.to_string())
        });
        let (kind, text) = refused.join().unwrap();
        assert_eq!(text, expected);
        assert_eq!(kind, io::Error::from_raw_os_error(errno).kind());
    }
    UringDriver::probe().unwrap();
}

/// Lets this thread's `call` fail with `errno`.
fn forbid(call: u32, errno: i32) -> io::Result<()> {
    let step = |code: u32, jf: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf,
        k,
    };
    let mut steps = [
        // The call's number is the first word of what the filter sees.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, call),
        step(
            libc::BPF_RET | libc::BPF_K,
            0,
            libc::SECCOMP_RET_ERRNO | errno as u32,
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    rustix::thread::set_no_new_privs(true)?;
    // SAFETY: the program and its steps live until the call has copied them.
    let result = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
