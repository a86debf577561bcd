//! Rules from text in all formats: the format comes from the first byte, the rest is the file. What is read is written
//! and read again, and the slow path finds the rules that trying all of them finds, with megaflows that are right.
#![no_main]

use fibula_classify::text::{RuleFormat, RuleOptions, read};
use fibula_classify::{Flow, Scratch, SlowPath};
use libfuzzer_sys::fuzz_target;

/// Larger sets say nothing more, and trying all rules takes long.
const MOST: usize = 300;

fuzz_target!(|data: &[u8]| {
    let Some((&first, text)) = data.split_first() else { return };
    let format = RuleFormat::ALL[usize::from(first) % RuleFormat::ALL.len()];
    let mut options = RuleOptions::default();
    options.source = first & 0x80 != 0;
    let read_rules = |bytes: &[u8], format| read(bytes, format, &options);
    let rules = match read_rules(text, format) {
        Ok(text) => text.rules,
        Err(error) => {
            assert!(error.line > 0 && error.column > 0 && !error.what.is_empty());
            return;
        }
    };
    if rules.len() > MOST {
        return;
    }
    let lines: String = rules.iter().map(|(_, rule)| format!("{rule}\n")).collect();
    let again = read_rules(lines.as_bytes(), RuleFormat::Rules).expect("what is written is read");
    for ((_, rule), (_, again)) in rules.iter().zip(again.rules.iter()) {
        let mut same = again.clone();
        same.line = rule.line;
        assert_eq!(*rule, same);
    }
    let (slow, mut scratch) = (SlowPath::of(&rules), Scratch::default());
    for (_, rule) in rules.iter().take(50) {
        let mut flow = *rule.mask_match().flow();
        for range in rule.ranges() {
            flow.set(range.field, range.first);
        }
        let found = slow.lookup(&flow, &mut scratch);
        assert_eq!(found.rule, rules.first_match(&flow).map(|(id, _)| id));
        // All bits that the megaflow leaves open.
        let words = flow.words().iter().zip(found.mask.words());
        let words: Vec<u64> = words.map(|(word, mask)| word ^ !mask).collect();
        let other = Flow::from_words(words.try_into().expect("as many words"));
        assert_eq!(found.rule, rules.first_match(&other).map(|(id, _)| id));
    }
});
