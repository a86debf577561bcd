//! URLs, their texts without secrets, and the names of their files.

use std::fmt;

use ureq::http::Uri;

use crate::FetchError;
use crate::record::digest_of;

/// Maximum length of a URL.
const LONGEST: usize = 8 << 10;

/// Maximum length of the name of a file.
const LONGEST_NAME: usize = 100;

/// A URL of the scheme `http` or `https`. Its text, by `Debug`, too, has no secrets: the user's name, the password and
/// the query are left out.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    text: String,
    uri: Uri,
}

impl Url {
    /// Parses a URL.
    ///
    /// ```
    /// use fibula_fetch::Url;
    /// let url = Url::parse("https://me:word@data.example/a/t.csv.gz?token=abc")?;
    /// assert_eq!(url.shown(), "https://data.example/a/t.csv.gz?...");
    /// assert_eq!(url.file_name(), "t.csv.gz");
    /// assert!(Url::parse("file:///etc/passwd").is_err());
    /// # Ok::<(), fibula_fetch::FetchError>(())
    /// ```
    ///
    /// # Errors
    /// If it is no URL, has another scheme or no host, or is longer than 8 KiB.
    pub fn parse(text: &str) -> Result<Self, FetchError> {
        // A fragment is a place inside of the document, and is not sent.
        let text = text.split_once('#').map_or(text, |(text, _)| text);
        let fail = |what| Err(FetchError::Url { url: shorten(text), what });
        if text.len() > LONGEST {
            return fail("it is longer than 8 KiB");
        }
        let Ok(uri) = text.parse::<Uri>() else {
            return fail(
                "it has characters that no URL has, or no host: write them as %20 and the like",
            );
        };
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return fail("only http:// and https:// are fetched");
        }
        match uri.host() {
            None | Some("") => fail("it has no host"),
            Some(_) => Ok(Self { text: text.to_owned(), uri }),
        }
    }

    /// Whether a name is meant as a URL: it begins with `http://` or `https://`.
    pub fn is_one(name: &str) -> bool {
        let scheme = name.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        matches!(scheme.as_deref(), Some("http" | "https"))
    }

    /// The text for people and for files: without user, password and query, which may be secrets.
    pub fn shown(&self) -> String {
        shown(&self.uri)
    }

    /// The name of the file at the end of the path, made of characters that are plain in all file systems. It has no
    /// separator and does not begin with a dot.
    pub fn file_name(&self) -> String {
        let last = self.uri.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let plain = plain(last);
        if plain.is_empty() { "data".to_owned() } else { plain }
    }

    /// Whether the connection is protected.
    pub(crate) fn is_secure(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    pub(crate) fn host(&self) -> &str {
        self.uri.host().unwrap_or_default()
    }

    /// The whole text, for the request.
    pub(crate) fn whole(&self) -> &str {
        &self.text
    }

    /// A digest of the whole text: a record names its URL without its secrets.
    pub(crate) fn digest(&self) -> String {
        digest_of(self.text.as_bytes())
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({})", self.shown())
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

/// The text of a URI without what may be secret.
pub(crate) fn shown(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    let port = uri.port_u16().map_or(String::new(), |port| format!(":{port}"));
    let query = if uri.query().is_some() { "?..." } else { "" };
    format!("{}://{host}{port}{}{query}", uri.scheme_str().unwrap_or_default(), uri.path())
}

/// A name of letters, digits, dots, hyphens and underscores that begins with none of the marks.
pub(crate) fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    // The end of a name has its format.
    let from = name.len().saturating_sub(LONGEST_NAME);
    name[from..].trim_start_matches(['.', '-', '_']).to_owned()
}

/// A name of a table, a source or a pattern of URLs as it is printed: of a URL without user, password and query, which
/// may be secrets.
///
/// ```
/// use fibula_fetch::shown_name;
/// assert_eq!(shown_name("https://me:word@h/{year}.csv?key=abc"), "https://h/{year}.csv?...");
/// assert_eq!(shown_name("what?.csv"), "what?.csv");
/// ```
pub fn shown_name(name: &str) -> String {
    match Url::is_one(name) {
        true => Url::parse(name).map_or_else(|_| shorten(name), |url| url.shown()),
        false => name.to_owned(),
    }
}

/// The beginning of a text that is no URL, without what is before an `@` and behind a `?`.
fn shorten(text: &str) -> String {
    let text = text.split('?').next().unwrap_or_default();
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let rest = rest.rsplit('@').next().unwrap_or_default();
    let separator = if scheme.is_empty() { "" } else { "://" };
    let whole = format!("{scheme}{separator}{rest}");
    match whole.char_indices().nth(200) {
        Some((end, _)) => format!("{}...", &whole[..end]),
        None => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_stay_in_their_folder() {
        for (path, name) in [
            ("/a/b/t.csv.gz", "t.csv.gz"),
            ("/", "data"),
            ("", "data"),
            ("/..", "data"),
            ("/a/..%2f..%2fetc", "2f.._2fetc"),
            ("/.ssh", "ssh"),
            ("/a;b,c", "a_b_c"),
            ("/list/", "list"),
        ] {
            let url = Url::parse(&format!("http://h{path}")).unwrap();
            assert_eq!(url.file_name(), name, "{path}");
        }
        let long = Url::parse(&format!("http://h/{}.csv", "x".repeat(300))).unwrap();
        assert!(long.file_name().len() <= LONGEST_NAME && long.file_name().ends_with(".csv"));
    }

    #[test]
    fn secrets_are_not_shown() {
        let url = Url::parse("https://me:secret@h.example:8443/t.csv?key=secret#secret").unwrap();
        for text in [url.shown(), format!("{url:?}"), url.to_string()] {
            assert!(!text.contains("secret") && text.contains("h.example:8443/t.csv"), "{text}");
        }
        let wrong = Url::parse("ftp://me:secret@h/t?secret").unwrap_err().to_string();
        assert!(!wrong.contains("secret") && wrong.contains("ftp://h/t"), "{wrong}");
    }

    #[test]
    fn other_schemes_and_no_hosts_are_refused() {
        for text in
            ["file:///etc/passwd", "ftp://h/a", "https://", "http:///a", "a b", "https://h/a b", ""]
        {
            assert!(Url::parse(text).is_err(), "{text}");
        }
        assert!(Url::parse(&format!("http://h/{}", "x".repeat(9000))).is_err());
        assert!(Url::is_one("HTTPS://h/") && !Url::is_one("file:///a") && !Url::is_one("a.csv"));
    }
}
