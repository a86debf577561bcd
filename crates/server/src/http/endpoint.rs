//! The description of an endpoint, which is used to find, check and document requests.

/// One endpoint, with a handler of type `H`.
pub(crate) struct Endpoint<H> {
    pub(crate) method: Verb,
    /// Its path; a last part in braces stands for the rest of the path, slashes included.
    pub(crate) path: &'static str,
    /// Its description, one sentence.
    pub(crate) summary: &'static str,
    /// The parameter in braces.
    pub(crate) rest: Option<Parameter>,
    pub(crate) query: &'static [Parameter],
    pub(crate) returns: Returns,
    /// The statuses of its refusals, beside those that every endpoint has.
    pub(crate) refusals: &'static [u16],
    /// Whether it needs no token.
    pub(crate) is_open: bool,
    /// Whether it takes any query: a page reads its own, and a link that was shared may have got parameters on its way.
    pub(crate) is_lenient: bool,
    pub(crate) handler: H,
}

/// The HTTP method.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    /// `GET`, and `HEAD`, which is the same without the body.
    Get,
    Post,
}

impl Verb {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// The content of an answer.
pub(crate) enum Returns {
    /// JSON, by the name of its schema.
    Json(&'static str),
    /// Server-sent events, by the names of events and schemas.
    Events(&'static [(&'static str, &'static str)]),
    /// Something else, of these media types.
    Media(&'static [&'static str]),
}

/// A parameter of the path or the query.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    pub(crate) is_required: bool,
    pub(crate) summary: &'static str,
}

/// The type of a parameter.
pub(crate) enum Takes {
    Text,
    /// A whole number in this range.
    Number(u64, u64),
    /// One of these words.
    Word(&'static [&'static str]),
}

impl<H> Endpoint<H> {
    /// The rest of the path, `""` if the endpoint has none; `None` if the path is another one.
    pub(crate) fn rest<'a>(&self, path: &'a str) -> Option<&'a str> {
        match self.path.split_once('{') {
            None => (path == self.path).then_some(""),
            Some((fixed, _)) => path.strip_prefix(fixed).filter(|rest| match &self.rest {
                Some(Parameter { takes: Takes::Word(words), .. }) => words.contains(rest),
                _ => !rest.is_empty(),
            }),
        }
    }
}
