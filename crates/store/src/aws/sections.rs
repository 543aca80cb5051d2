//! Sections of keys and values, as AWS's files have them.
//!
//! Problem: readers of other INI files take quotes off, though `credential_process = "/a b/c" d` needs them, and take the
//! lines below `s3 =` for keys of the profile. Here a value is the rest of its line, and lines that are indented further
//! than the key above them belong to that key and are passed over. Comments are lines that begin with `#` or `;`. Of a key
//! that stands twice, in one section or in two of the same name, the last counts.
//!
//! ```text
//! [profile "my keys"]          section `profile my keys`
//! region = eu-west-1           key `region`
//! s3 =
//!   max_concurrent_requests = 20
//! ```

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Sections(Vec<(String, Vec<(String, String)>)>);

impl Sections {
    /// The sections of a text.
    ///
    /// # Errors
    /// Names the line that is neither section, key, comment nor part of a value.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        // Keys above the first section are of none.
        let mut sections = vec![(String::new(), Vec::new())];
        let mut indent_of_key = None;
        for (at, line) in text.lines().enumerate() {
            let own = line.trim();
            let indent = line.len() - line.trim_start().len();
            if own.is_empty()
                || own.starts_with(['#', ';'])
                || indent_of_key.is_some_and(|key| indent > key)
            {
                continue;
            }
            let refused = |why| format!("line {}: {why}", at + 1);
            if let Some(name) = own.strip_prefix('[') {
                let name = name
                    .split_once(']')
                    .ok_or_else(|| refused("[ without ]"))?
                    .0;
                sections.push((plain(name), Vec::new()));
                indent_of_key = None;
            } else {
                let (key, value) = own
                    .split_once('=')
                    .ok_or_else(|| refused("neither [section] nor key = value"))?;
                let pair = (key.trim().to_owned(), value.trim().to_owned());
                sections
                    .last_mut()
                    .expect("there is one from the beginning")
                    .1
                    .push(pair);
                indent_of_key = Some(indent);
            }
        }
        sections.remove(0);
        Ok(Self(sections))
    }

    /// The last value of a key, unless it is empty.
    pub(super) fn value(&self, section: &str, key: &str) -> Option<&str> {
        let sections = self.0.iter().rev().filter(|(name, _)| name == section);
        let mut pairs = sections.flat_map(|(_, pairs)| pairs.iter().rev());
        let (_, value) = pairs.find(|(name, _)| name == key)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// The names of the sections.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

/// A name with one blank between its words, and without the quotes around one.
fn plain(name: &str) -> String {
    let words = name.split_whitespace();
    let words: Vec<&str> = words.collect();
    words.join(" ").replace(['"', '\''], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_as_they_stand_and_nested_settings_are_no_keys() {
        let text = "region = of no section\n# [comment]\n[default]\r\nregion=eu-west-1\r\n; k = v\ns3 =\n  region = nested\n\n\
                    credential_process = \"/a b/c\" --x=y # z\n[profile  \"my keys\"]\n  region = a\n  output = json\n\
                    [default]\nregion = us-east-1\nempty =\n";
        let sections = Sections::parse(text).unwrap();
        let names: Vec<&str> = sections.names().collect();
        assert_eq!(names, ["default", "profile my keys", "default"]);
        assert_eq!(sections.value("default", "region"), Some("us-east-1"));
        assert_eq!(
            sections.value("default", "credential_process"),
            Some("\"/a b/c\" --x=y # z")
        );
        assert_eq!(sections.value("profile my keys", "output"), Some("json"));
        assert_eq!(sections.value("default", "empty"), None);
        assert_eq!(sections.value("", "region"), None);
    }

    #[test]
    fn a_line_that_is_nothing_is_named() {
        let refused = |text| Sections::parse(text).unwrap_err();
        assert_eq!(
            refused("[a]\nk = v\nnonsense"),
            "line 3: neither [section] nor key = value"
        );
        assert_eq!(refused("[a\n"), "line 1: [ without ]");
    }
}
