//! Numbers the sets of next hops: a number means the same set for every worker and in every published table.
//!
//! ```text
//!   worker: next hops ──► Catalogue ──► Token: number of the group, and the first version of tables with it
//!                            │ new ones wake the control thread
//!                            ▼
//!   control: groups by number, up to a version ──► Paths, published with that version ──► worker
//! ```
//!
//! A worker that has a token may use its number in every table whose version is at least [`Token::since`]. While
//! any worker holds the token, the number means the same next hops in all later tables. Afterwards the number may be
//! given to other next hops, with a token whose `since` is later. So a worker never uses a table in which its number
//! means other next hops.

use std::collections::HashMap;

use fibula_core::NextHops;

use crate::egress::GroupId;
use crate::sync::{Arc, Mutex, lock};

/// The right to use a number.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) group: GroupId,
    /// The first version of tables with this number.
    pub(super) since: u64,
}

/// The group of everything that has no next hop.
pub(super) const NOWHERE: GroupId = 0;

/// Unused tokens are removed when there are so many more tokens than at the last time.
const SLACK: usize = 1024;

pub(super) struct Catalogue {
    inner: Mutex<Inner>,
    /// Calls the control thread.
    wake: Box<dyn Fn() + Send + Sync>,
}

struct Inner {
    tokens: HashMap<Arc<NextHops>, Arc<Token>>,
    /// The next hops of each number; `None` for free ones.
    groups: Vec<Option<Arc<NextHops>>>,
    free: Vec<GroupId>,
    version: u64,
    /// Number of tokens at which the unused ones are removed.
    limit: usize,
    slack: usize,
}

/// The groups by number, and the version of tables that are made of them.
pub(super) struct Known {
    pub(super) groups: Vec<Option<Arc<NextHops>>>,
    pub(super) version: u64,
}

impl Catalogue {
    pub(super) fn new(wake: Box<dyn Fn() + Send + Sync>) -> Self {
        Self::with_slack(wake, SLACK)
    }

    pub(super) fn with_slack(wake: Box<dyn Fn() + Send + Sync>, slack: usize) -> Self {
        let nowhere = Arc::new(NextHops::default());
        let inner = Inner {
            tokens: HashMap::new(),
            groups: vec![Some(nowhere)],
            free: Vec::new(),
            version: 0,
            limit: slack,
            slack,
        };
        Self { inner: Mutex::new(inner), wake }
    }

    /// The tokens of these next hops, in order; for those without next hops, none.
    pub(super) fn tokens(
        &self,
        all: &mut dyn Iterator<Item = NextHops>,
    ) -> Vec<Option<Arc<Token>>> {
        let mut inner = lock(&self.inner);
        let before = inner.version;
        let mut tokens = Vec::new();
        for next_hops in all {
            let is_nowhere = next_hops == NextHops::default();
            tokens.push((!is_nowhere).then(|| inner.token(next_hops, before + 1)));
        }
        let is_new = inner.version != before;
        drop(inner);
        if is_new {
            (self.wake)();
        }
        tokens
    }

    /// The groups to compile. Unused numbers are free from now on.
    pub(super) fn known(&self) -> Known {
        let mut inner = lock(&self.inner);
        if inner.tokens.len() > inner.limit {
            inner.collect();
        }
        Known { groups: inner.groups.clone(), version: inner.version }
    }

    /// The version that [`Catalogue::known`] would have.
    pub(super) fn version(&self) -> u64 {
        lock(&self.inner).version
    }
}

impl Inner {
    fn token(&mut self, next_hops: NextHops, version: u64) -> Arc<Token> {
        if let Some(token) = self.tokens.get(&next_hops) {
            return Arc::clone(token);
        }
        self.version = version;
        let next_hops = Arc::new(next_hops);
        let group = self.free.pop().unwrap_or_else(|| {
            self.groups.push(None);
            (self.groups.len() - 1) as GroupId
        });
        self.groups[group as usize] = Some(Arc::clone(&next_hops));
        let token = Arc::new(Token { group, since: version });
        self.tokens.insert(next_hops, Arc::clone(&token));
        token
    }

    /// Frees the numbers whose tokens nobody else holds. Others get tokens only under the lock.
    fn collect(&mut self) {
        let Self { tokens, groups, free, .. } = self;
        tokens.retain(|_, token| {
            let is_used = Arc::strong_count(token) > 1;
            if !is_used {
                groups[token.group as usize] = None;
                free.push(token.group);
            }
            is_used
        });
        self.limit = 2 * self.tokens.len() + self.slack;
    }
}
