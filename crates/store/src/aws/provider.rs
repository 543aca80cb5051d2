//! Keys for requests, had from their source when they are needed and [kept] until shortly before they end.
//!
//! Sources: [`roles`] of the token service, a [`login`], a [`program`], the [`services`] of a container or an instance.
//!
//! [kept]: crate::kept

mod login;
mod program;
mod roles;
mod services;

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use serde_json::Value;

use super::{Keys, Origin};
use crate::Limits;
use crate::kept::{Kept, Lasting, Reason};
use crate::service::{needed, time};

/// Addresses of services, where they are not those of AWS.
#[derive(Clone, Default, Debug)]
pub(crate) struct Services {
    pub(crate) region: String,
    pub(crate) sts: Option<String>,
    pub(crate) sso: Option<String>,
}

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct Provider {
    origin: Origin,
    services: Services,
    limits: Limits,
    kept: Arc<Kept<AwsCredential>>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Provider {{ {} }}", self.origin)
    }
}

/// Keys and their end.
type Had = Lasting<Keys>;

#[async_trait]
impl CredentialProvider for Provider {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let had = || {
            let own = self.clone();
            async move {
                let (keys, until) = checked(own.had(&own.origin).await?)?;
                let keys = AwsCredential {
                    key_id: keys.id,
                    secret_key: keys.secret,
                    token: keys.token,
                };
                Ok((keys, until))
            }
        };
        let origin = || self.origin.to_string();
        self.kept.or_had("S3", origin, had).await
    }
}

/// Keys that can stand in a header, and have not ended.
fn checked((keys, until): Had) -> Result<Had, String> {
    let is_plain =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_plain(&keys.id) || !is_plain(&keys.secret) || !keys.token.as_deref().is_none_or(is_plain)
    {
        return Err("its keys have characters that no key has, or none".to_owned());
    }
    match until.filter(|until| *until <= SystemTime::now()) {
        Some(until) => Err(format!(
            "its keys ended {}",
            DateTime::<Utc>::from(until).format("%F %T UTC")
        )),
        None => Ok((keys, until)),
    }
}

impl Provider {
    pub(crate) fn new(origin: Origin, services: Services, limits: &Limits) -> Self {
        Self {
            origin,
            services,
            limits: *limits,
            kept: Arc::default(),
        }
    }

    async fn had(&self, origin: &Origin) -> Result<Had, Reason> {
        match origin {
            Origin::Keys { keys, .. } => Ok((keys.clone(), None)),
            Origin::WebIdentity {
                file,
                role,
                session,
                ..
            } => self.of_identity(file, role, session).await,
            Origin::Role { by, .. } => {
                // Boxed, as a role may be had by a role.
                let (keys, _) = checked(Box::pin(self.had(by)).await?)?;
                self.of_role(origin, keys).await
            }
            Origin::Login { .. } => self.of_login(origin).await,
            Origin::Program { command, .. } => Ok(program::keys(command).await?),
            Origin::Container { url, authorization } => self.of_container(url, authorization).await,
            Origin::Instance { url } => self.of_instance(url).await,
        }
    }
}

/// The form of programs, containers and instances.
fn of_json(answer: &Value) -> Result<Had, String> {
    let text = |name| answer[name].as_str().map(str::to_owned);
    let keys = Keys {
        id: needed(answer, "AccessKeyId")?,
        secret: needed(answer, "SecretAccessKey")?,
        token: text("SessionToken").or_else(|| text("Token")),
    };
    let until = text("Expiration").map(|text| time(&text)).transpose()?;
    Ok((keys, until))
}
