//! Keys of the machine: of the service of its container, or of the instance itself.

use reqwest::Method;

use super::{Had, Provider, of_json};
use crate::aws::Authorization;
use crate::kept::Reason;
use crate::service::{BARE, Question, address, ask, json, read};

impl Provider {
    pub(super) async fn of_container(
        &self,
        url: &str,
        authorization: &Authorization,
    ) -> Result<Had, Reason> {
        let text = match authorization {
            Authorization::Not => None,
            Authorization::Text(text) => Some(text.clone()),
            Authorization::File(file) => Some(read(file).await?),
        };
        let headers = text.as_ref().map(|text| ("authorization", &**text));
        let headers: Vec<_> = headers.into_iter().collect();
        let url = address(url, BARE)?;
        let answer = ask(&self.limits, Question::get(&url, &headers)).await?;
        Ok(of_json(&json(&answer)?)?)
    }

    pub(super) async fn of_instance(&self, base: &str) -> Result<Had, Reason> {
        let url = |path: &str| address(&format!("{base}/latest/{path}"), BARE);
        let lasts = [("x-aws-ec2-metadata-token-ttl-seconds", "600")];
        let token = url("api/token")?;
        let token = Question {
            method: Method::PUT,
            is_own: true,
            ..Question::get(&token, &lasts)
        };
        let token = ask(&self.limits, token).await?;
        let with = [("x-aws-ec2-metadata-token", token.trim())];
        let roles = "meta-data/iam/security-credentials/";
        let own = |url| Question {
            is_own: true,
            ..Question::get(url, &with)
        };
        let role = url(roles)?;
        let role = ask(&self.limits, own(&role)).await?;
        let role = role.lines().next().unwrap_or_default().trim();
        if role.is_empty() {
            return Err("the instance has no role".into());
        }
        let keys = url(&format!("{roles}{role}"))?;
        let answer = ask(&self.limits, own(&keys)).await?;
        Ok(of_json(&json(&answer)?)?)
    }
}
