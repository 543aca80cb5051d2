//! What the engine remembers of a device between requests.
