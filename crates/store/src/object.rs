//! One version of an object, as a source.
//!
//! Every range names the version (`If-Match`, or a generation), so a reader gets bytes of the one it
//! opened, or `ESTALE`. Attempts go on where the one before stopped, with growing pauses, until
//! the deadline.

use std::fmt;
use std::io;
use std::sync::Arc;

use forerun_core::Profile;
use forerun_io::arena::Target;
use forerun_io::source::remote::{self, SERVERS};
use forerun_io::source::{Key, Source};
use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta};

use crate::Client;
use crate::address::{Address, Store};
use crate::attempts::{Attempts, Fault};

/// See the [module](self).
pub struct Object {
    client: Client,
    store: Arc<Store>,
    key: Path,
    url: Arc<str>,
    version: Arc<str>,
    bytes: u64,
    asked: Version,
}

/// A version, as it is named in a request.
#[derive(Clone)]
pub(crate) enum Version {
    ETag(String),
    Number(String),
}

impl Version {
    /// The number if there is one: the object can be read to its end when it has been replaced.
    pub(crate) fn of_opened(meta: &ObjectMeta) -> Option<Self> {
        let number = meta.version.clone().filter(|version| version != "null");
        number.map(Self::Number).or_else(|| Self::tag(meta))
    }

    /// The tag if there is one: listings tell no number.
    pub(crate) fn of_listed(meta: &ObjectMeta) -> Option<Self> {
        Self::tag(meta).or_else(|| Self::of_opened(meta))
    }

    /// A weak ETag stands for several contents.
    fn tag(meta: &ObjectMeta) -> Option<Self> {
        let strong = meta.e_tag.clone().filter(|tag| !tag.starts_with("W/"));
        strong.map(Self::ETag)
    }

    /// Both in one text: a tag is in quotes.
    pub(crate) fn text(&self) -> Arc<str> {
        match self {
            Self::ETag(tag) if tag.starts_with('"') => tag.as_str().into(),
            Self::ETag(tag) => format!("\"{tag}").into(),
            Self::Number(number) => number.as_str().into(),
        }
    }

    /// The version of a [text](Self::text).
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        Some(match text.strip_prefix('"') {
            Some(_) if text.ends_with('"') && text.len() > 1 => Self::ETag(text.to_owned()),
            Some(bare) => Self::ETag(bare.to_owned()),
            None => Self::Number(text.to_owned()),
        })
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, version, .. } = self;
        write!(f, "Object {{ {url}, version {version} }}")
    }
}

impl Object {
    pub(crate) fn new(
        client: &Client,
        store: Arc<Store>,
        address: &Address,
        bytes: u64,
        version: Version,
    ) -> Self {
        Self {
            client: client.clone(),
            store,
            key: address.key.clone(),
            url: address.url.as_str().into(),
            version: version.text(),
            bytes,
            asked: version,
        }
    }

    fn options(&self, begin: u64, end: u64) -> GetOptions {
        let mut options = GetOptions {
            range: Some(GetRange::Bounded(begin..end)),
            ..GetOptions::default()
        };
        match self.asked.clone() {
            Version::ETag(tag) => options.if_match = Some(tag),
            Version::Number(number) => options.version = Some(number),
        }
        options
    }

    /// Reads from `offset + done` on until `end` is there; how far it came stands in `done`.
    async fn read_once(
        &self,
        target: &mut Target,
        offset: u64,
        done: &mut usize,
        end: usize,
    ) -> Result<(), Fault> {
        let options = self.options(offset + *done as u64, offset + end as u64);
        let answer = self.store.objects.get_opts(&self.key, options).await;
        let answer = answer.map_err(|error| Fault::of(&error))?;
        if answer.range.start != offset + *done as u64 || answer.meta.size != self.bytes {
            let why = "another range than was asked for";
            return Err(Fault::Last(io::Error::other(why)));
        }
        // Also one without an ETag: the server may have ignored the condition.
        if matches!(&self.asked, Version::ETag(tag) if answer.meta.e_tag.as_ref() != Some(tag)) {
            return Err(Fault::Last(io::Error::from_raw_os_error(libc::ESTALE)));
        }
        let mut pieces = answer.into_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| Fault::of(&error))?;
            let from = *done;
            let to = end.min(from + piece.len());
            target.fill(from, to, |at, memory| {
                memory.copy_from_slice(&piece[at - from..][..memory.len()]);
            });
            *done = to;
        }
        match *done == end {
            true => Ok(()),
            false => Err(Fault::Passing(io::Error::other("the body is cut short"))),
        }
    }

    async fn read_all(
        &self,
        target: &mut Target,
        offset: u64,
        done: &mut usize,
        end: usize,
    ) -> io::Result<()> {
        let mut attempts = Attempts::new(&self.client.limits);
        while *done < end {
            let before = *done;
            if let Err(fault) = attempts
                .make(self.read_once(target, offset, done, end))
                .await
            {
                if *done > before {
                    attempts.begin_anew();
                }
                attempts.pause(fault).await?;
            }
        }
        Ok(())
    }
}

impl Source for Object {
    fn key(&self) -> Key {
        Key::Object {
            name: self.url.clone(),
            version: self.version.clone(),
        }
    }

    fn device(&self) -> Option<u64> {
        Some(self.store.number)
    }

    fn is_served(&self) -> bool {
        true
    }

    fn requests_max(&self) -> Option<u32> {
        Some(self.client.limits.requests)
    }

    fn profile(&self) -> Option<Profile> {
        remote::profile(SERVERS)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn read(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize> {
        let left = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let end = target.bytes().min(left);
        let mut done = skip;
        if done < end {
            let reading = self.read_all(target, offset, &mut done, end);
            let read = self.client.runtime.block_on(reading);
            read.inspect_err(|error| {
                tracing::warn!("{}: bytes from {offset}: {error}", self.url);
            })?;
        }
        Ok(done.max(skip))
    }
}
