//! One version of an object, as a source.
//!
//! Every range names the version (`If-Match`, or a generation), so a reader gets bytes of the one it
//! opened, or `ESTALE`. Where a server ignores a condition, or has no such version, the tag or number of its answer or of
//! one more question tells the same. A number that is refused is asked for by its ETag from then on. Attempts go on where the one before stopped, with growing pauses, until
//! the deadline.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use forerun_core::Profile;
use forerun_io::arena::Target;
use forerun_io::error::number;
use forerun_io::source::remote::{self, Held, Limits, SERVERS};
use forerun_io::source::{Key, Pending, Source};
use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable};
use object_store::path::Path;
use object_store::{Error, GetOptions, GetRange, GetResult, ObjectMeta};

use crate::Client;
use crate::address::Address;
use crate::attempts::{Attempts, Fault};
use crate::failure::{self, status_of};
use crate::store::{Connected, Store};
use crate::web::{self, WebAddress};

/// See the [module](self).
pub struct Object {
    client: Client,
    store: Arc<Store>,
    key: Path,
    web: Option<WebAddress>,
    url: Arc<str>,
    version: Arc<str>,
    bytes: u64,
    modified: Option<SystemTime>,
    asked: Version,
    /// Whether the store refuses the number of the version, and gives the object by its ETag.
    is_by_tag: AtomicBool,
    held: Held<Vec<u8>>,
    /// Whether the last range to end was given up: the next ones have less time.
    is_given_up: AtomicBool,
}

/// This part of a range's time is left to those after one that was given up: a reader whose range failed has
/// its first block asked for alone, and the error is to come after one deadline, not two. 20 s of two minutes.
const GIVEN_UP_PART: u32 = 6;

/// A version, as it is named in a request.
#[derive(Clone)]
pub(crate) enum Version {
    /// In quotes.
    ETag(String),
    /// With the ETag beside it, if it has a strong one.
    Number(String, Option<String>),
}

impl Version {
    /// The number if there is one: the object can be read to its end when it has been replaced.
    pub(crate) fn of_opened(meta: &ObjectMeta) -> Option<Self> {
        let number = meta.version.clone().filter(|version| version != "null");
        let tag = meta.e_tag.as_deref().and_then(usable);
        number.map_or(tag.clone().map(Self::ETag), |number| {
            Some(Self::Number(number, tag))
        })
    }

    /// The tag if there is one: listings tell no number.
    pub(crate) fn of_listed(meta: &ObjectMeta) -> Option<Self> {
        Self::tag(meta).or_else(|| Self::of_opened(meta))
    }

    fn tag(meta: &ObjectMeta) -> Option<Self> {
        meta.e_tag.as_deref().and_then(Self::of_tag)
    }

    pub(crate) fn of_tag(tag: &str) -> Option<Self> {
        usable(tag).map(Self::ETag)
    }

    /// Both in one text: a tag is in quotes.
    pub(crate) fn text(&self) -> Arc<str> {
        match self {
            Self::ETag(text) | Self::Number(text, _) => text.as_str().into(),
        }
    }

    /// The version of a [text](Self::text).
    pub(crate) fn of_text(text: &str) -> Self {
        match text.starts_with('"') {
            true => Self::ETag(text.to_owned()),
            false => Self::Number(text.to_owned(), None),
        }
    }
}

/// Whether a request that names a version by its number may have failed for the number alone.
fn may_be_of_number(fault: &Fault) -> bool {
    match fault {
        Fault::Refused(_) => true,
        Fault::Last(error) => failure::status(&error.to_string()) == Some(501),
        Fault::Passing(_) | Fault::WithoutKeys(_) => false,
    }
}

fn stale() -> io::Error {
    io::Error::from_raw_os_error(libc::ESTALE)
}

/// The one form of an ETag: listings of Azure and of some servers of S3 leave the quotes away, their answers do not.
fn quoted(tag: &str) -> String {
    let bare = tag.strip_prefix('"').unwrap_or(tag);
    format!("\"{}\"", bare.strip_suffix('"').unwrap_or(bare))
}

/// The ETag in its one form, if it names a version: a weak one stands for several contents, and an empty one for any;
/// one that is no text of a header cannot be asked for.
fn usable(tag: &str) -> Option<String> {
    let tag = quoted(tag);
    let is_usable = tag != "\"\"" && !tag.contains(char::is_control);
    (is_usable && !tag.starts_with("\"W/")).then_some(tag)
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
            web: address.web.clone(),
            url: address.url.as_str().into(),
            // A listing and the object itself may say two sizes of one version: those are two files.
            version: format!("{} {bytes}", version.text()).into(),
            bytes,
            modified: None,
            asked: version,
            is_by_tag: AtomicBool::new(false),
            held: Held::default(),
            is_given_up: AtomicBool::new(false),
        }
    }

    /// The version that its store has told.
    pub(crate) fn told(
        client: &Client,
        store: Arc<Store>,
        address: &Address,
        meta: &ObjectMeta,
        version: Version,
    ) -> Self {
        let modified = Some(meta.last_modified.into());
        Self {
            modified,
            ..Self::new(client, store, address, meta.size, version)
        }
    }

    /// With bytes that came with its opening.
    pub(crate) fn with_held(self, held: Held<Vec<u8>>) -> Self {
        Self { held, ..self }
    }

    /// How long a range may take now.
    fn limits(&self) -> Limits {
        let limits = self.client.limits;
        let deadline = match self.is_given_up.load(Ordering::Relaxed) {
            true => limits.deadline / GIVEN_UP_PART,
            false => limits.deadline,
        };
        Limits { deadline, ..limits }
    }

    /// The version as it is named now.
    fn asked(&self) -> Version {
        match &self.asked {
            Version::Number(_, Some(tag)) if self.is_by_tag.load(Ordering::Relaxed) => {
                Version::ETag(tag.clone())
            }
            asked => asked.clone(),
        }
    }

    fn options(&self, begin: u64, end: u64) -> GetOptions {
        let mut options = GetOptions {
            range: Some(GetRange::Bounded(begin..end)),
            ..self
                .web
                .as_ref()
                .map(WebAddress::options)
                .unwrap_or_default()
        };
        match self.asked() {
            Version::ETag(tag) => options.if_match = Some(tag),
            Version::Number(number, _) => options.version = Some(number),
        }
        options
    }

    /// Asks for a range; the right to read an object may not be one to name the numbers of its versions, and a gateway
    /// may not know them.
    async fn get(&self, with: &Arc<Connected>, options: GetOptions) -> Result<GetResult, Fault> {
        let tag = match self.asked() {
            Version::Number(_, tag) => tag,
            Version::ETag(_) => None,
        };
        let by_tag = tag.map(|tag| GetOptions {
            if_match: Some(tag),
            version: None,
            ..options.clone()
        });
        match (self.get_named(with, options).await, by_tag) {
            (Err(fault), Some(by_tag)) if may_be_of_number(&fault) => {
                let answer = self.get_named(with, by_tag).await;
                if answer.as_ref().is_err_and(may_be_of_number) {
                    return Err(fault);
                }
                self.is_by_tag.store(answer.is_ok(), Ordering::Relaxed);
                answer
            }
            (answer, _) => answer,
        }
    }

    /// Asks for a range of a version; a server whose tags are bare may know a condition in that form alone.
    async fn get_named(
        &self,
        with: &Arc<Connected>,
        options: GetOptions,
    ) -> Result<GetResult, Fault> {
        let is_number = options.version.is_some();
        let objects = &with.objects;
        let bare = options.if_match.as_ref().map(|tag| tag.replace('"', ""));
        let error = match objects.get_opts(&self.key, options.clone()).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if matches!(error, Error::Precondition { .. }) && bare.is_some() {
            let if_match = bare;
            let again = objects.get_opts(
                &self.key,
                GetOptions {
                    if_match,
                    ..options
                },
            );
            match again.await.map_err(|error| Fault::of(&error)) {
                Err(Fault::Last(_)) => {}
                answer => return answer,
            }
        }
        let may_be_replaced = match &error {
            Error::NotFound { .. } => is_number,
            // Where no condition is known, behind the end of a shorter one.
            _ => status_of(&error) == Some(416),
        };
        match may_be_replaced && self.is_replaced(with).await {
            true => Err(Fault::Last(stale())),
            false => Err(Fault::of(&error)),
        }
    }

    /// Whether another version is there now.
    async fn is_replaced(&self, with: &Arc<Connected>) -> bool {
        let now = match &self.web {
            Some(web) => web::opened(with.clone(), web.clone()).await,
            None => with.head(&self.key).await.map(|head| head.meta),
        };
        now.is_ok_and(|now| self.is_other(&now))
    }

    /// Whether an answer is of another version. Also one that names none: the server may have ignored the condition.
    fn is_other(&self, answer: &ObjectMeta) -> bool {
        let is_tag = |tag| answer.e_tag.as_deref().map(quoted).as_ref() == Some(tag);
        let is_same = match (&self.asked(), &answer.version) {
            (Version::Number(number, _), Some(told)) => told == number,
            (Version::Number(_, tag), None) => tag.as_ref().is_some_and(is_tag),
            (Version::ETag(tag), _) => is_tag(tag),
        };
        !is_same
    }

    /// Reads from `offset + done` on until `end` is there; how far it came stands in `done`.
    async fn read_once(
        &self,
        with: &Arc<Connected>,
        target: &mut Target,
        offset: u64,
        done: &mut usize,
        end: usize,
    ) -> Result<(), Fault> {
        let begin = offset + *done as u64;
        let answer = self
            .get(with, self.options(begin, offset + end as u64))
            .await?;
        let other = |why| Err(Fault::Last(io::Error::other(why)));
        if answer.range.start != begin {
            return other(format!("bytes from {}, not {begin}", answer.range.start));
        }
        if self.is_other(&answer.meta) {
            return Err(Fault::Last(stale()));
        }
        let (told, known) = (answer.meta.size, self.bytes);
        if told != known {
            let why = format!("Content-Range says {told} bytes in all; the object had {known}");
            return other(why);
        }
        let mut pieces = answer.into_stream();
        // Bytes behind the range are left: they may have no end.
        while *done < end
            && let Some(piece) = pieces.next().await
        {
            let piece = piece.map_err(|error| Fault::of(&error))?;
            *done = target.copy(*done, end, &piece);
        }
        match *done == end {
            true => Ok(()),
            false => Err(Fault::Passing(io::Error::other("the body is cut short"))),
        }
    }

    /// The whole of a [`Source::read`].
    async fn read_range(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize> {
        let left = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let end = target.bytes().min(left);
        let (limits, begun) = (self.limits(), Instant::now());
        let mut done = self.held.fill(target, offset, skip, end);
        let read = self.read_all(&limits, target, offset, &mut done, end).await;
        // Other errors come at once, and would the next time.
        let is_given_up = read.is_err() && begun.elapsed() >= limits.deadline / 2;
        self.is_given_up.store(is_given_up, Ordering::Relaxed);
        read.inspect_err(|error| {
            if self.store.tells(number(error).unwrap_or_default()) {
                tracing::warn!("{}: bytes from {offset}: {error}", self.url);
            }
        })
        .map_err(failure::bare)?;
        Ok(done)
    }

    async fn read_all(
        &self,
        limits: &Limits,
        target: &mut Target,
        offset: u64,
        done: &mut usize,
        end: usize,
    ) -> io::Result<()> {
        let mut attempts = Attempts::new(limits);
        while *done < end {
            let before = *done;
            let with = self.store.current();
            let attempt = self.read_once(&with, target, offset, done, end);
            if let Err(fault) = attempts.make(attempt).await.inspect(|()| with.was_taken()) {
                if *done > before {
                    attempts.begin_anew();
                }
                attempts.pause(fault, &self.store, &with).await?;
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

    fn modified(&self) -> Option<SystemTime> {
        self.modified
    }

    fn read(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize> {
        self.client.run(self.read_range(target, offset, skip))
    }

    fn begin(self: Arc<Self>, mut pending: Pending) -> Option<Pending> {
        let threads = self.client.threads.clone();
        let (give_up, asked) = AbortHandle::new_pair();
        pending.on_give_up(move || give_up.abort());
        let read = async move {
            let (offset, skip) = (pending.offset(), pending.skip());
            if let Some(target) = pending.target() {
                let read = self.read_range(target, offset, skip).await;
                pending.end(read);
            }
        };
        threads.spawn(Abortable::new(read, asked));
        None
    }
}
