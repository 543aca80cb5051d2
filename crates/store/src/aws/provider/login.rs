//! Keys of a login (SSO), had with the token that `aws sso login` left in its cache.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tokio::task::spawn_blocking;

use super::{Had, Provider};
use crate::aws::{Keys, Origin};
use crate::kept::Reason;
use crate::named_file;
use crate::service::{Question, address, ask, json, needed, time};

impl Provider {
    pub(super) async fn of_login(&self, origin: &Origin) -> Result<Had, Reason> {
        let Origin::Login {
            folder,
            start,
            region,
            account,
            role,
            ..
        } = origin
        else {
            return Err("no login".into());
        };
        let (folder, start) = (folder.clone(), start.clone());
        let token = spawn_blocking(move || login(&folder, &start)).await;
        let token = token.map_err(|error| error.to_string())??;
        let usual = format!("https://portal.sso.{region}.amazonaws.com");
        let base = self.services.sso.as_deref().unwrap_or(&usual);
        let query = [("role_name", role), ("account_id", account)];
        let base = base.trim_end_matches('/');
        let url = address(&format!("{base}/federation/credentials"), &query)?;
        let headers = [("x-amz-sso_bearer_token", &*token)];
        let answer = ask(&self.limits, Question::get(&url, &headers)).await?;
        Ok(keys(&json(&answer)?["roleCredentials"])?)
    }
}

fn keys(answer: &Value) -> Result<Had, String> {
    let keys = Keys {
        id: needed(answer, "accessKeyId")?,
        secret: needed(answer, "secretAccessKey")?,
        token: Some(needed(answer, "sessionToken")?),
    };
    let until = answer["expiration"].as_u64();
    let until = until.and_then(|ms| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(ms)));
    Ok((keys, Some(until.ok_or("an answer without expiration")?)))
}

/// The token of a login that has not ended, among the caches of all logins.
fn login(folder: &Path, start: &str) -> Result<String, String> {
    let again = format!(
        "no login of {start} in {}: aws sso login makes one",
        folder.display()
    );
    let files = fs::read_dir(folder).map_err(|_| again.clone())?;
    let mut newest: Option<(SystemTime, String)> = None;
    for file in files.flatten() {
        let cache = named_file::text(&file.path()).ok();
        let Some(cache) = cache.and_then(|text| json(&text).ok()) else {
            continue;
        };
        let text = |name: &str| cache[name].as_str();
        // Files of other kinds are in the folder, too.
        let (Some(of), Some(token), Some(until)) = (
            text("startUrl"),
            text("accessToken"),
            text("expiresAt").and_then(|text| time(text).ok()),
        ) else {
            continue;
        };
        let is_of = of.trim_end_matches(['/', '#']) == start.trim_end_matches(['/', '#']);
        if is_of && newest.as_ref().is_none_or(|(newest, _)| *newest < until) {
            newest = Some((until, token.to_owned()));
        }
    }
    match newest {
        Some((until, token)) if until > SystemTime::now() => Ok(token),
        Some(_) => Err(format!(
            "the login of {start} has ended: aws sso login renews it"
        )),
        None => Err(again),
    }
}
