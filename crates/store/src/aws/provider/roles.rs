//! Keys of a role, had from the token service (STS): with a token of an identity, or signed with other keys.

use std::path::Path;

use reqwest::Method;

use super::{Had, Provider};
use crate::aws::{Keys, Origin};
use crate::kept::Reason;
use crate::listed::element;
use crate::service::{Question, address, ask, read, shown, time};

impl Provider {
    /// With the token in a file, which others renew.
    pub(super) async fn of_identity(
        &self,
        file: &Path,
        role: &str,
        session: &str,
    ) -> Result<Had, Reason> {
        let token = read(file).await?;
        let query = [
            ("Action", "AssumeRoleWithWebIdentity"),
            ("RoleArn", role),
            ("RoleSessionName", session),
            ("WebIdentityToken", &token),
        ];
        self.of_sts(&query, None).await
    }

    /// With these keys of another source.
    pub(super) async fn of_role(&self, origin: &Origin, keys: Keys) -> Result<Had, Reason> {
        let Origin::Role {
            role,
            session,
            external,
            seconds,
            ..
        } = origin
        else {
            return Err("no role".into());
        };
        let mut query = vec![
            ("Action", "AssumeRole"),
            ("RoleArn", role.as_str()),
            ("RoleSessionName", session),
        ];
        query.extend(external.as_deref().map(|id| ("ExternalId", id)));
        let seconds = seconds.as_deref();
        query.extend(seconds.map(|seconds| ("DurationSeconds", seconds)));
        self.of_sts(&query, Some(keys)).await
    }

    async fn of_sts(&self, query: &[(&str, &str)], keys: Option<Keys>) -> Result<Had, Reason> {
        let region = &self.services.region;
        let usual = format!("https://sts.{region}.amazonaws.com");
        let base = self.services.sts.as_deref().unwrap_or(&usual);
        let version = [("Version", "2011-06-15")];
        let query: Vec<_> = query.iter().chain(&version).copied().collect();
        let url = address(base, &query)?;
        let question = Question {
            method: Method::POST,
            signed: keys.map(|keys| (keys, region.as_str())),
            ..Question::get(&url, &[])
        };
        let answer = ask(&self.limits, question).await?;
        let of = |name| {
            let text = element(&answer, name);
            let text = text.ok_or_else(|| format!("{} answered without {name}", shown(&url)));
            text.map(str::to_owned)
        };
        let keys = Keys {
            id: of("AccessKeyId")?,
            secret: of("SecretAccessKey")?,
            token: Some(of("SessionToken")?),
        };
        Ok((keys, Some(time(&of("Expiration")?)?)))
    }
}
