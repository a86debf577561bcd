//! Searches whose answers have several pages.

use super::{Client, ClientError, query};
use crate::api;
use crate::handlers::search::MOST;

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
