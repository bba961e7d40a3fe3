//! stub
#![allow(missing_docs, unused, clippy::todo, clippy::unimplemented)]
use std::ops::{Deref,DerefMut};
use weft_rope::Rope;
pub struct Options { pub shards: usize, pub databases: usize, pub workers: usize, pub hash_seeds: [u64; 4] }
pub struct Keyspace;
pub struct Gate; pub struct GateGuard<'a>(&'a u8); impl Gate { pub fn enter(&self) -> GateGuard<'_> { unimplemented!() } }
impl Keyspace {
    pub fn new(options: Options) -> Keyspace{unimplemented!()}
    pub fn shards(&self) -> usize{unimplemented!()}  pub fn databases(&self) -> usize{unimplemented!()}  pub fn workers(&self) -> usize{unimplemented!()}
    pub fn position(&self, key: &[u8]) -> Position{unimplemented!()}
    pub fn shard_of(&self, pos: Position) -> usize{unimplemented!()}
    pub fn latch(&self, shard: usize) -> Latched<'_>{unimplemented!()}
    pub fn try_latch(&self, shard: usize) -> Option<Latched<'_>>{unimplemented!()}
    pub fn gate(&self, worker: usize) -> &Gate{unimplemented!()}
    pub fn exclusive(&self, worker: usize) -> Exclusive<'_>{unimplemented!()}
    pub fn key_count(&self, db: usize) -> usize{unimplemented!()}
    pub fn deadline_count(&self, db: usize) -> usize{unimplemented!()}
    pub fn shard_len(&self, shard: usize, db: usize) -> usize{unimplemented!()}
    pub fn next_nonempty(&self, db: usize, from: usize) -> Option<usize>{unimplemented!()}
    pub fn random_shard(&self, db: usize, rng: &mut impl Rng) -> Option<usize>{unimplemented!()}
    pub fn prefetch_bucket(&self, inside: &GateGuard<'_>, db: usize, pos: Position){unimplemented!()}
    pub fn prefetch_entry(&self, inside: &GateGuard<'_>, db: usize, pos: Position){unimplemented!()}
    pub fn cursor(&self, pos: Position) -> u64{unimplemented!()}
    pub fn cursor_position(&self, cursor: u64) -> Option<(usize, Position)>{unimplemented!()}
    pub fn shard_start(&self, shard: usize) -> Position{unimplemented!()}
    pub fn memory(&self) -> Memory{unimplemented!()}
    pub fn held_bytes(&self) -> u64{unimplemented!()}
    pub fn trim(&self, shard: usize) -> usize{unimplemented!()}
}
pub struct Memory { pub entries: u64, pub pages: u64, pub tables: u64, pub external: u64, pub retired: u64 }
pub trait Rng { fn next_u64(&mut self) -> u64; }
impl<F: FnMut() -> u64> Rng for F { fn next_u64(&mut self) -> u64 { self() } }
#[derive(Clone,Copy,Debug,PartialEq,Eq,PartialOrd,Ord)] pub struct Position(u64);
impl Position { pub fn bits(self)->u64{self.0} pub fn from_bits(b:u64)->Self{Self(b)} }
pub struct Latched<'a>(&'a mut Shard);
impl Deref for Latched<'_> { type Target=Shard; fn deref(&self)->&Shard{self.0} }
impl DerefMut for Latched<'_> { fn deref_mut(&mut self)->&mut Shard{self.0} }
pub struct Exclusive<'a>(&'a u8);
impl Exclusive<'_> { pub fn shard_mut(&self, i: usize) -> Latched<'_>{unimplemented!()} pub fn shards(&self) -> impl Iterator<Item = Latched<'_>>{ std::iter::empty() } pub fn keyspace(&self) -> &Keyspace{unimplemented!()} }
pub struct Shard;
impl Shard {
    pub fn index(&self) -> usize{unimplemented!()}
    pub fn clamp_now(&mut self, now_ms: u64) -> u64{unimplemented!()}
    pub fn find(&self, db: usize, pos: Position, key: &[u8]) -> Option<Entry<'_>>{unimplemented!()}
    pub fn set(&mut self, db: usize, pos: Position, key: &[u8], value: NewValue<'_>, deadline: DeadlineChange) -> bool{unimplemented!()}
    pub fn edit_bytes(&mut self, db: usize, pos: Position, key: &[u8]) -> Option<&mut [u8]>{unimplemented!()}
    pub fn rope_mut(&mut self, db: usize, pos: Position, key: &[u8]) -> Option<RopeMut<'_>>{unimplemented!()}
    pub fn set_raw(&mut self, db:usize, pos:Position, key:&[u8], raw: bool) -> bool{unimplemented!()}
    pub fn remove(&mut self, db:usize, pos:Position, key:&[u8]) -> Option<Removed>{unimplemented!()}
    pub fn take(&mut self, db:usize, pos:Position, key:&[u8]) -> Option<OwnedEntry>{unimplemented!()}
    pub fn set_deadline(&mut self, db:usize, pos:Position, key:&[u8], deadline: Option<u64>) -> bool{unimplemented!()}
    pub fn len(&self, db:usize) -> usize{unimplemented!()}  pub fn with_deadline(&self, db:usize) -> usize{unimplemented!()}
    pub fn flush(&mut self, db:usize) -> Dropped{unimplemented!()}
    pub fn swap_tables(&mut self, a: usize, b: usize){unimplemented!()}
    pub fn scan(&self, db:usize, from: Position, max_buckets: usize, each: impl FnMut(Entry<'_>)) -> Option<Position>{unimplemented!()}
    pub fn random(&self, db:usize, rng: &mut impl Rng) -> Option<Entry<'_>>{unimplemented!()}
    pub fn expire_due(&mut self, db:usize, now_ms: u64, max: usize, each: impl FnMut(&Entry<'_>)) -> ExpireProgress{unimplemented!()}
    pub fn next_due_ms(&self, db:usize) -> Option<u64>{unimplemented!()}
    pub fn capture(&mut self){unimplemented!()}
    pub fn captured(&mut self) -> Vec<PreImage>{unimplemented!()}
    pub fn restore(&mut self, image: PreImage){unimplemented!()}
    pub fn take_garbage(&mut self) -> Garbage{unimplemented!()}
    pub fn memory(&self) -> Memory{unimplemented!()}
}
pub struct RopeMut<'a>(&'a mut Rope);
impl Deref for RopeMut<'_> { type Target=Rope; fn deref(&self)->&Rope{self.0} }
impl DerefMut for RopeMut<'_> { fn deref_mut(&mut self)->&mut Rope{self.0} }
pub struct Garbage; impl Garbage { pub fn is_empty(&self)->bool{true} }
pub enum NewValue<'a> { Int(i64), Bytes(&'a [u8]), RawBytes(&'a [u8]), Rope(Rope) }
#[derive(Clone,Copy)] pub enum DeadlineChange { Keep, Clear, At(u64) }
#[derive(Clone,Copy)] pub struct Entry<'a>(&'a u8);
impl<'a> Entry<'a> { pub fn key(&self) -> &'a [u8]{unimplemented!()} pub fn deadline(&self) -> Option<u64>{unimplemented!()} pub fn value(&self) -> ValueRef<'a>{unimplemented!()} pub fn is_raw(&self) -> bool{unimplemented!()}
    pub fn access(&self) -> u32 {unimplemented!()} pub fn set_access(&self, bits: u32) {unimplemented!()} 
    pub fn to_owned_value(&self) -> OwnedValue{unimplemented!()} pub fn allocated_bytes(&self) -> usize {unimplemented!()} }
#[derive(Clone,Copy)] pub enum ValueRef<'a> { Int(i64), Bytes(&'a [u8]), Rope(&'a Rope) }
pub enum OwnedValue { Int(i64), Bytes(Vec<u8>), Rope(Rope) }
pub struct OwnedEntry { pub key: Vec<u8>, pub value: OwnedValue, pub deadline: Option<u64>, pub raw: bool, pub access: u32 }
pub struct Removed { pub deadline: Option<u64>, pub value: Option<Rope> }
pub struct PreImage { pub db: usize, pub pos: Position, pub key: Vec<u8>, pub prior: Option<Prior> }
pub struct Prior { pub value: OwnedValue, pub deadline: Option<u64>, pub raw: bool, pub access: u32 }
pub struct Dropped; impl Dropped { pub fn free_some(&mut self, budget: usize) -> bool {unimplemented!()} pub fn len(&self) -> usize{unimplemented!()} }
pub struct ExpireProgress { pub removed: usize, pub more: bool, pub next_due_ms: Option<u64> }
