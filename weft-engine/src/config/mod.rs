//! stub
#![allow(missing_docs)]
use std::sync::Arc;
pub struct Config(Arc<Settings>); impl Config { pub fn settings(&self)->Arc<Settings>{Arc::clone(&self.0)} }
pub struct Settings; impl Settings { pub fn requirepass(&self)->&str{""} pub fn databases(&self)->usize{16} pub fn proto_max_bulk_len(&self)->usize{512<<20} pub fn client_query_buffer_limit(&self)->usize{1<<30} }
pub struct Change;
