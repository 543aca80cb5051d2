//! Where keys for S3 come from, in the order of AWS's own programs.
//!
//! Problem: few users have keys in variables. Keys of a role, a login, a program or a container end after an hour, and
//! are had by a request.
//!
//! Mechanism: the first source of this list that is there as a whole is used, and no other is asked if it fails. Keys
//! that end are had again five minutes before, by a [provider].
//!
//! | | source |
//! | --- | --- |
//! | 1 | `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` |
//! | 2 | `AWS_WEB_IDENTITY_TOKEN_FILE`, `AWS_ROLE_ARN`, unless `AWS_PROFILE` is set |
//! | 3 | profile: `role_arn` with `source_profile`, `credential_source` or `web_identity_token_file` |
//! | 4 | profile: `sso_session`, or `sso_start_url`, with `sso_account_id` and `sso_role_name` |
//! | 5 | profile: `aws_access_key_id`, `aws_secret_access_key`, `aws_session_token` |
//! | 6 | profile: `credential_process` |
//! | 7 | `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI` or `.._FULL_URI`, `AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE` or `.._TOKEN` |
//! | 8 | the instance's service, with `FORERUN_METADATA=1` |
//!
//! Without any, requests are not signed.

pub(crate) mod profiles;
pub(crate) mod provider;
mod sections;

use std::fmt;
use std::path::PathBuf;

use self::profiles::Profiles;
use crate::credentials::{METADATA, Variables};

/// Roles that are had by a role that is had by a role, at most.
const ROLES_MAX: usize = 5;

/// Keys, as they stand somewhere.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) token: Option<String>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys {{ {} }}", self.id)
    }
}

/// The key of a service of a container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Authorization {
    Not,
    Text(String),
    File(PathBuf),
}

/// A source of keys; `of` is for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    Keys {
        keys: Keys,
        of: String,
    },
    WebIdentity {
        file: PathBuf,
        role: String,
        session: String,
        of: String,
    },
    Role {
        role: String,
        session: String,
        external: Option<String>,
        seconds: Option<String>,
        by: Box<Origin>,
        of: String,
    },
    Login {
        /// Caches of logins.
        folder: PathBuf,
        start: String,
        region: String,
        account: String,
        role: String,
        of: String,
    },
    Program {
        command: String,
        of: String,
    },
    Container {
        url: String,
        authorization: Authorization,
    },
    Instance {
        url: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keys { of, .. } => write!(f, "keys of {of}"),
            Self::WebIdentity { role, of, .. } => write!(f, "role {role} of {of}"),
            Self::Role { role, by, of, .. } => write!(f, "role {role} of {of}, by {by}"),
            Self::Login {
                account, role, of, ..
            } => {
                write!(f, "role {role} of account {account}, by the login of {of}")
            }
            Self::Program { of, .. } => write!(f, "keys of the credential_process of {of}"),
            Self::Container { url, .. } => write!(f, "keys of the container's service {url}"),
            Self::Instance { url } => write!(f, "keys of the instance's service {url}"),
        }
    }
}

/// The source of the keys, if there is one.
///
/// # Errors
/// A source is there in part, or cannot be read; in words.
pub(crate) fn origin(
    variables: Variables<'_>,
    profiles: &Profiles,
) -> Result<Option<Origin>, String> {
    if let Some(keys) = of_variables(variables)? {
        return Ok(Some(keys));
    }
    if variable(variables, "AWS_PROFILE").is_none()
        && let Some(identity) = web_identity(variables)
    {
        return Ok(Some(identity));
    }
    profiles.check()?;
    if let Some(origin) = of_profile(variables, profiles, profiles.name(), 0)? {
        return Ok(Some(origin));
    }
    if let Some(container) = container(variables)? {
        return Ok(Some(container));
    }
    Ok(instance(variables))
}

/// The sources that [`origin`] looked at, when it found none.
pub(crate) fn looked_at(profiles: &Profiles) -> String {
    format!(
        "no keys in AWS_ACCESS_KEY_ID, in AWS_WEB_IDENTITY_TOKEN_FILE with AWS_ROLE_ARN, in {}, or in \
         AWS_CONTAINER_CREDENTIALS_RELATIVE_URI; on a machine of AWS, {METADATA}=1 asks its service",
        profiles.place(profiles.name())
    )
}

fn variable(variables: Variables<'_>, name: &str) -> Option<String> {
    variables(name).filter(|value| !value.is_empty())
}

fn of_variables(variables: Variables<'_>) -> Result<Option<Origin>, String> {
    let id = variable(variables, "AWS_ACCESS_KEY_ID");
    let secret = variable(variables, "AWS_SECRET_ACCESS_KEY");
    let (id, secret) = match (id, secret) {
        (Some(id), Some(secret)) => (id, secret),
        (None, None) => return Ok(None),
        (Some(_), None) => {
            return Err("AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not".into());
        }
        (None, Some(_)) => {
            return Err("AWS_SECRET_ACCESS_KEY is set, and AWS_ACCESS_KEY_ID is not".into());
        }
    };
    let token = variable(variables, "AWS_SESSION_TOKEN");
    let of = "AWS_ACCESS_KEY_ID".to_owned();
    Ok(Some(Origin::Keys {
        keys: Keys { id, secret, token },
        of,
    }))
}

fn web_identity(variables: Variables<'_>) -> Option<Origin> {
    Some(Origin::WebIdentity {
        file: variable(variables, "AWS_WEB_IDENTITY_TOKEN_FILE")?.into(),
        role: variable(variables, "AWS_ROLE_ARN")?,
        session: session(variable(variables, "AWS_ROLE_SESSION_NAME")),
        of: "AWS_WEB_IDENTITY_TOKEN_FILE".to_owned(),
    })
}

fn session(named: Option<String>) -> String {
    named.unwrap_or_else(|| "forerun".to_owned())
}

fn of_profile(
    variables: Variables<'_>,
    profiles: &Profiles,
    name: &str,
    roles: usize,
) -> Result<Option<Origin>, String> {
    let of = profiles.place(name);
    let value = |key: &str| profiles.value(name, key);
    let needed = |key: &str, beside: &str| {
        value(key).ok_or_else(|| format!("{of} has {beside} without {key}"))
    };
    // A role may be had by the keys of its own profile.
    let has_role = roles == 0 || !profiles.is_own_source(name);
    if let Some(role) = value("role_arn").filter(|_| has_role) {
        let session = session(value("role_session_name"));
        if let Some(file) = value("web_identity_token_file") {
            let file = PathBuf::from(file);
            return Ok(Some(Origin::WebIdentity {
                file,
                role,
                session,
                of,
            }));
        }
        if value("mfa_serial").is_some() {
            let why = "needs a code of a device (mfa_serial), which is not asked for: put keys of a session in its place";
            return Err(format!("{of} {why}"));
        }
        if roles == ROLES_MAX {
            return Err(format!("{of}: more than {ROLES_MAX} roles by roles"));
        }
        let by = match (
            value("source_profile"),
            value("credential_source").as_deref(),
        ) {
            (Some(source), _) => {
                profiles.check_name(&source, &of)?;
                of_profile(variables, profiles, &source, roles + 1)?
            }
            (None, Some("Environment")) => of_variables(variables)?,
            (None, Some("EcsContainer")) => container(variables)?,
            (None, Some("Ec2InstanceMetadata")) => instance(variables),
            (None, Some(other)) => {
                let known = "Environment, EcsContainer or Ec2InstanceMetadata";
                return Err(format!(
                    "{of}: credential_source {other:?}: must be {known}"
                ));
            }
            (None, None) => needed("source_profile", "role_arn").map(|_| None)?,
        };
        let by =
            by.ok_or_else(|| format!("{of}: no keys for role_arn where it says to have them"))?;
        return Ok(Some(Origin::Role {
            role,
            session,
            external: value("external_id"),
            seconds: value("duration_seconds"),
            by: Box::new(by),
            of,
        }));
    }
    if value("sso_session").is_some() || value("sso_start_url").is_some() {
        let (start, region) = match value("sso_session") {
            Some(session) => {
                let of_session = |key: &str| {
                    let value = profiles.session(&session, key);
                    value.ok_or_else(|| format!("{of}: sso-session {session:?} has no {key}"))
                };
                (of_session("sso_start_url")?, of_session("sso_region")?)
            }
            None => (
                needed("sso_start_url", "a login")?,
                needed("sso_region", "sso_start_url")?,
            ),
        };
        return Ok(Some(Origin::Login {
            folder: profiles.home().join(".aws/sso/cache"),
            start,
            region,
            account: needed("sso_account_id", "a login")?,
            role: needed("sso_role_name", "a login")?,
            of,
        }));
    }
    let (half, other) = ("aws_access_key_id", "aws_secret_access_key");
    let keys = match (value(half), value(other)) {
        (None, None) => None,
        (Some(id), _) => Some((id, needed(other, half)?)),
        (None, Some(secret)) => Some((needed(half, other)?, secret)),
    };
    if let Some((id, secret)) = keys {
        let token = value("aws_session_token");
        let keys = Keys { id, secret, token };
        return Ok(Some(Origin::Keys { keys, of }));
    }
    let command = value("credential_process");
    Ok(command.map(|command| Origin::Program { command, of }))
}

fn container(variables: Variables<'_>) -> Result<Option<Origin>, String> {
    let relative = variable(variables, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    let full = variable(variables, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    let url = match (relative, full) {
        (Some(path), _) => format!("http://169.254.170.2{path}"),
        (None, Some(url)) => {
            check_container(&url)?;
            url
        }
        (None, None) => return Ok(None),
    };
    let file = variable(variables, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    let text = variable(variables, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
    let authorization = match (file, text) {
        (Some(file), _) => Authorization::File(file.into()),
        (None, Some(text)) => Authorization::Text(text),
        (None, None) => Authorization::Not,
    };
    Ok(Some(Origin::Container { url, authorization }))
}

/// Keys go over plain HTTP within a machine alone: loopback, and the addresses of the services of ECS and EKS.
fn check_container(url: &str) -> Result<(), String> {
    let host = reqwest::Url::parse(url).ok();
    let host = host
        .as_ref()
        .map(|url| (url.scheme(), url.host_str().unwrap_or_default()));
    let known = [
        "localhost",
        "169.254.170.2",
        "169.254.170.23",
        "[fd00:ec2::23]",
        "[::1]",
    ];
    match host {
        Some(("https", _)) => Ok(()),
        Some(("http", host)) if known.contains(&host) || host.starts_with("127.") => Ok(()),
        _ => Err(format!(
            "AWS_CONTAINER_CREDENTIALS_FULL_URI={url}: must be https, or http of loopback or of {}",
            known[1..4].join(", ")
        )),
    }
}

fn instance(variables: Variables<'_>) -> Option<Origin> {
    let is_asked = variables(METADATA).is_some_and(|value| value == "1");
    let named = ["AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_METADATA_ENDPOINT"];
    let url = named.into_iter().find_map(|name| variable(variables, name));
    let url = url.unwrap_or_else(|| "http://169.254.169.254".to_owned());
    let url = url.trim_end_matches('/').to_owned();
    is_asked.then_some(Origin::Instance { url })
}
