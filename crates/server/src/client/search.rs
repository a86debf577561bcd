//! Searches whose answers have several pages.

use super::{Client, ClientError, query};
use crate::api;
use crate::handlers::filter;
use crate::handlers::search::MOST;

/// What `/v1/filter` is asked for. A route fits all that is given.
#[derive(Clone, Copy, Debug, Default)]
pub struct RouteQuery<'a> {
    /// The AS that originates it.
    pub origin_as: Option<u32>,
    /// Patterns of communities, separated by commas, of which one fits; see
    /// [`CommunityPattern`](crate::CommunityPattern).
    pub community: Option<&'a str>,
    /// A regular expression for the AS path; see [`PathPattern`](crate::PathPattern).
    pub path_regex: Option<&'a str>,
    /// One table; all without.
    pub table: Option<&'a str>,
}

impl Client {
    /// The meaning of a text, and what belongs to it: of an AS, all prefixes of one table or of all, read in as many
    /// requests as they need.
    ///
    /// # Errors
    /// The errors of [`Client::lookup`].
    pub fn search(&mut self, text: &str, table: Option<&str>) -> Result<api::Search, ClientError> {
        let mut found = self.page(text, table, None)?;
        while let Some(after) = found.next.take() {
            let page = self.page(text, table, Some(&after))?;
            for origins in page.origins {
                match found.origins.iter_mut().find(|known| known.table == origins.table) {
                    Some(known) => known.prefixes.extend(origins.prefixes),
                    None => found.origins.push(origins),
                }
            }
            // A server that repeats itself would be asked for ever.
            if page.next.as_ref() == Some(&after) {
                return Err(ClientError::Answer { what: format!("`next` is {after} again") });
            }
            (found.next, found.truncated) = (page.next, page.truncated);
        }
        Ok(found)
    }

    /// Calls `take` with each best route that is wanted, in the order of tables and prefixes, until it returns `false`.
    /// They are read in as many requests as they need.
    ///
    /// # Errors
    /// The errors of [`Client::lookup`].
    pub fn filter(
        &mut self,
        wanted: &RouteQuery<'_>,
        mut take: impl FnMut(api::TableRoute) -> bool,
    ) -> Result<(), ClientError> {
        let RouteQuery { origin_as, community, path_regex, table } = *wanted;
        let (origin_as, limit) = (origin_as.map(|asn| asn.to_string()), filter::MOST.to_string());
        let mut after: Option<String> = None;
        loop {
            let parameters = [
                ("origin_as", origin_as.as_deref()),
                ("community", community),
                ("path_regex", path_regex),
                ("table", table),
                ("limit", Some(&*limit)),
                ("after", after.as_deref()),
            ];
            let page: api::Filtered = self.json(&format!("/v1/filter{}", query(&parameters)))?;
            if !page.routes.into_iter().all(&mut take) {
                return Ok(());
            }
            match page.next {
                None => return Ok(()),
                // A server that repeats itself would be asked for ever.
                Some(next) if after.as_ref() == Some(&next) => {
                    return Err(ClientError::Answer { what: format!("`next` is {next} again") });
                }
                next => after = next,
            }
        }
    }

    fn page(
        &mut self,
        text: &str,
        table: Option<&str>,
        after: Option<&str>,
    ) -> Result<api::Search, ClientError> {
        let limit = MOST.to_string();
        let parameters =
            [("q", Some(text)), ("table", table), ("limit", Some(&*limit)), ("after", after)];
        self.json(&format!("/v1/search{}", query(&parameters)))
    }
}
