//! The receive buffers: memory lent to the kernel, which fills a buffer and hands it over with a completion.
//!
//! Owns the buffers and the ring of descriptors through which they are lent. Both are mapped, and touched only as far as
//! they are used: a driver that receives nothing costs one page. The kernel takes buffers in turn, so all that are lent
//! are touched sooner or later: no more are in use than there are connections for.
//!
//! Invariant: a buffer is either spare (nobody touches it) or in the ring (only the kernel touches it) or there is exactly
//! one [`Buffer`] of it (only its holder touches it).

use std::io;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Bytes of one buffer: a pipeline of a hundred small requests. Of a buffer that is filled less, only the first page is
/// ever touched.
pub(super) const BUFFER_BYTES: usize = 16 << 10;

/// Buffers of one driver, 1 MiB together. A power of two, as the ring demands.
const BUFFERS: usize = 64;

/// Buffers in use for each connection, 256 KiB, up to all there are: what one that sends much has handed out in a turn.
/// With fewer, those that flood would leave none to others.
const BUFFERS_EACH: usize = 16;

/// The one group of buffers a driver has.
pub(super) const GROUP: u16 = 0;

/// All buffers of one driver.
pub(super) struct Buffers {
    ring: Mapping,
    memory: Rc<Mapping>,
    /// Where the next buffer is put into the ring; the kernel has been told of those before `published`.
    tail: u16,
    published: u16,
    /// Buffers in the ring, or filled by the kernel and not yet taken over.
    lent: usize,
    /// Buffers that are not in use.
    spare: Vec<u16>,
    /// How many should be in use.
    wanted: usize,
}

impl Buffers {
    /// Maps the buffers. Nothing of them is lent yet.
    pub(super) fn new() -> io::Result<Buffers> {
        Ok(Buffers {
            ring: Mapping::new(BUFFERS * size_of::<BufRingEntry>())?,
            memory: Rc::new(Mapping::new(BUFFERS * BUFFER_BYTES)?),
            tail: 0,
            published: 0,
            lent: 0,
            spare: (0..BUFFERS as u16).rev().collect(),
            wanted: 0,
        })
    }

    /// Registers the ring and lends the first buffers.
    ///
    /// # Safety
    /// These buffers must outlive the ring behind `submitter`.
    pub(super) unsafe fn register(&mut self, submitter: &Submitter<'_>) -> io::Result<()> {
        let address = self.ring.start.as_ptr() as u64;
        // SAFETY: the mapping starts a page, holds BUFFERS entries, and outlives the ring, as the caller promises.
        unsafe { submitter.register_buf_ring_with_flags(address, BUFFERS as u16, GROUP, 0) }?;
        self.serve(0);
        self.publish();
        Ok(())
    }

    /// Brings the number of buffers in use up to what so many connections need. Those beyond leave as they come back.
    #[inline]
    pub(super) fn serve(&mut self, connections: usize) {
        self.wanted = (connections.max(1))
            .saturating_mul(BUFFERS_EACH)
            .min(BUFFERS);
        while self.in_use() < self.wanted
            && let Some(number) = self.spare.pop()
        {
            self.lend(number);
        }
    }

    fn in_use(&self) -> usize {
        BUFFERS - self.spare.len()
    }

    /// Whether so few are left for the kernel to fill that nobody should hold more than he must.
    pub(super) fn are_scarce(&self) -> bool {
        self.lent < self.wanted / 4
    }

    /// Buffers the kernel can fill, as far as is known here.
    pub(super) fn lent(&self) -> usize {
        self.lent
    }

    /// Takes over a buffer with `len` received bytes.
    ///
    /// # Safety
    /// A completion must just have handed the buffer over, and it must not have been taken over for that completion yet.
    pub(super) unsafe fn take(&mut self, number: u16, len: usize) -> Buffer {
        assert!(usize::from(number) < BUFFERS && len <= BUFFER_BYTES);
        self.lent -= 1;
        Buffer {
            memory: Rc::clone(&self.memory),
            number,
            start: 0,
            end: len as u32,
        }
    }

    /// Takes a buffer back. If it is still wanted, the kernel can use it after the next [`Buffers::publish`].
    pub(super) fn give_back(&mut self, buffer: Buffer) {
        assert!(
            Rc::ptr_eq(&self.memory, &buffer.memory),
            "another driver's buffer"
        );
        if self.in_use() > self.wanted {
            self.spare.push(buffer.number);
        } else {
            self.lend(buffer.number);
        }
    }

    /// Tells the kernel of the buffers put back since the last time.
    #[inline]
    pub(super) fn publish(&mut self) {
        if self.published == self.tail {
            return;
        }
        self.published = self.tail;
        // SAFETY: the ring was mapped for entries, is zeroed memory to begin with, and its first entry holds the tail.
        let tail = unsafe { BufRingEntry::tail(self.entry(0)) };
        // SAFETY: the field is aligned, lives as long as the mapping, and is only accessed atomically once it is shared.
        let tail = unsafe { AtomicU16::from_ptr(tail.cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    fn lend(&mut self, number: u16) {
        let entry = self.entry(usize::from(self.tail) % BUFFERS);
        let address = self.memory.at(usize::from(number) * BUFFER_BYTES);
        // SAFETY: the entry is inside the mapping, and the kernel does not look at it until the tail has passed it: no
        // more than BUFFERS buffers exist, so the one that was here before has been handed over.
        let entry = unsafe { &mut *entry };
        entry.set_addr(address as u64);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
        self.lent += 1;
    }

    fn entry(&self, index: usize) -> *mut BufRingEntry {
        self.ring.at(index * size_of::<BufRingEntry>()).cast()
    }

    /// Keeps the memory for ever: the kernel may still write to it.
    pub(super) fn leak(&mut self) {
        std::mem::forget(Rc::clone(&self.memory));
        self.ring.len = 0;
    }
}

/// Received bytes, in a buffer that belongs to the holder until it is given back. One that is dropped is never used again.
pub(super) struct Buffer {
    memory: Rc<Mapping>,
    number: u16,
    start: u32,
    end: u32,
}

impl Buffer {
    /// Bytes not yet consumed.
    pub(super) fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// The bytes not yet consumed.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        let offset = usize::from(self.number) * BUFFER_BYTES + self.start as usize;
        let start = self.memory.at(offset);
        // SAFETY: inside the mapping, which this keeps alive; initialised, since mappings are zeroed; and nobody else
        // touches it, since there is one `Buffer` of a buffer that is not in the ring, and it is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(start, self.len()) }
    }

    /// Consumes the first `count` bytes.
    pub(super) fn advance(&mut self, count: usize) {
        assert!(count <= self.len());
        self.start += count as u32;
    }
}

/// Zeroed pages of anonymous memory.
struct Mapping {
    start: NonNull<u8>,
    /// 0: not unmapped when dropped.
    len: usize,
}

impl Mapping {
    fn new(len: usize) -> io::Result<Mapping> {
        // SAFETY: the kernel chooses the place, so nothing else is mapped over.
        let start = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, len })
    }

    fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.len);
        // SAFETY: inside the mapping, or just past its end.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: mapped by `new` with this length, and nothing refers to it: buffers keep it alive.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}
