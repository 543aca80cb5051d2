//! Objects of stores and HTTP servers, and the credentials for them, against servers of this process.

mod credentials;
mod http;
#[path = "../http_server/mod.rs"]
mod http_server;
mod keys;
mod odd;
mod s3;
mod scripted;
#[path = "../signed/mod.rs"]
mod signed;
mod tree;
