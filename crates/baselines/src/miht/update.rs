use fibula_core::{BuildError, Follow, Patched, Prefix, Routes};

use super::build::check_limits;
use super::index::NO_TRIE;
use super::{Miht, TrieAddr, Tries};

impl<A: TrieAddr> Follow<A> for Miht<A> {
    /// Inserts each changed prefix into its trie or removes it. A trie is added or removed with its key. No other node
    /// changes, and nothing becomes garbage, so a build is never due.
    fn follow(&mut self, routes: &Routes<A>, changed: &[Prefix<A>]) -> Result<Patched, BuildError> {
        check_limits(routes)?;
        for &prefix in changed {
            let hop = routes.get(prefix);
            let put = |tries: &mut Tries<A>, root, level| match hop {
                Some(hop) => tries.insert(root, level, prefix, hop),
                None => tries.remove(root, level, prefix),
            };
            if u32::from(prefix.len()) < self.k {
                self.keyless = put(&mut self.tries, self.keyless, 0);
                continue;
            }
            let key = prefix.addr().key(self.k);
            let before = self.index.find(key);
            let after = put(&mut self.tries, before, self.k as u8);
            match (before, after) {
                (NO_TRIE, NO_TRIE) => {}
                (NO_TRIE, trie) => self.index.insert(key, trie),
                (_, NO_TRIE) => self.index.remove(key),
                // The root of a trie stays where it is.
                _ => debug_assert_eq!(before, after),
            }
        }
        self.shape = self.shape();
        Ok(Patched::Applied)
    }
}
