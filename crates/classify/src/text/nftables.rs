//! The output of `nft list ruleset`: the base chains of one hook, with the sets of their tables.

use std::collections::HashMap;

use super::draft::{Draft, Word, unquoted, words};
use super::{RuleOptions, RuleText, TextError, values};
use crate::{Action, Condition, Field};

/// The end of a line is a separate word, because rules end there.
const END: &str = "\n";

/// The words of the whole text. Braces, commas and semicolons are separate words.
fn all_words(text: &str) -> Result<Vec<Word<'_>>, TextError> {
    let mut all = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for word in words(line, number)? {
            if word.text.starts_with('"') {
                all.push(word);
                continue;
            }
            let mut start = 0;
            for (at, mark) in word.text.match_indices(['{', '}', ',', ';']) {
                if at > start {
                    all.push(word.part(&word.text[start..at], start));
                }
                all.push(word.part(mark, at));
                start = at + 1;
            }
            if start < word.text.len() {
                all.push(word.part(&word.text[start..], start));
            }
        }
        let column = line.chars().count() as u32 + 1;
        all.push(Word { text: END, line: number, column });
    }
    Ok(all)
}

struct Reader<'a> {
    words: Vec<Word<'a>>,
    at: usize,
    hook: String,
    out: RuleText,
    chains: usize,
    others: Vec<&'a str>,
    /// Whether values of sets have a timeout.
    vanishing: bool,
}

/// The values of a set, or of one value.
type Values<'a> = Vec<Word<'a>>;

/// A table's sets, and the family that its rules are about.
struct Table<'a> {
    family: Option<u128>,
    sets: HashMap<&'a str, Values<'a>>,
}

pub(super) fn read(text: &str, options: &RuleOptions) -> Result<RuleText, TextError> {
    let mut reader = Reader {
        words: all_words(text)?,
        at: 0,
        hook: options.chain.to_lowercase(),
        out: RuleText::default(),
        chains: 0,
        others: Vec::new(),
        vanishing: false,
    };
    while let Some(word) = reader.next() {
        match word.text {
            END | ";" => {}
            "table" => reader.table(word)?,
            other => return Err(word.error(format!("`table` was expected, not `{other}`"))),
        }
    }
    if reader.chains == 0 {
        let end = reader.words.last().copied().unwrap_or(Word { text: "", line: 1, column: 1 });
        let what = format!("no chain has the hook {}: name one that is there", reader.hook);
        return Err(end.error(what));
    }
    if !reader.others.is_empty() {
        let note = format!("rules of {} were left out", reader.others.join(", "));
        reader.out.notes.push(note);
    }
    if reader.vanishing {
        let note =
            "values of sets have a timeout: they are taken as they are now, and stay".to_owned();
        reader.out.notes.push(note);
    }
    Ok(reader.out)
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<Word<'a>> {
        self.words.get(self.at).copied()
    }

    fn next(&mut self) -> Option<Word<'a>> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    /// The next word, which must be there.
    fn need(&mut self, behind: Word<'a>) -> Result<Word<'a>, TextError> {
        self.next()
            .filter(|word| word.text != END)
            .ok_or_else(|| behind.error(format!("something is missing behind `{}`", behind.text)))
    }

    fn expect(&mut self, behind: Word<'a>, text: &str) -> Result<Word<'a>, TextError> {
        let word = self.need(behind)?;
        match word.text == text {
            true => Ok(word),
            false => Err(word.error(format!("`{text}` was expected"))),
        }
    }

    /// Skips everything up to the closing brace; the opening one was read.
    fn skip(&mut self, open: Word<'a>) -> Result<(), TextError> {
        let mut depth = 1;
        while let Some(word) = self.next() {
            match word.text {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
        Err(open.error("the brace is not closed"))
    }

    fn table(&mut self, word: Word<'a>) -> Result<(), TextError> {
        let family = self.need(word)?;
        let name = self.need(family)?;
        let open = self.expect(name, "{")?;
        let version = match family.text {
            "ip" => Some(4),
            "ip6" => Some(6),
            "inet" => None,
            _ => {
                self.others.push(name.text);
                return self.skip(open);
            }
        };
        // Sets stand in front of the chains that use them.
        let mut table = Table { family: version, sets: HashMap::new() };
        while let Some(word) = self.next() {
            match word.text {
                END | ";" => {}
                "}" => return Ok(()),
                "set" => {
                    let name = self.need(word)?;
                    let open = self.expect(name, "{")?;
                    let values = self.set(open)?;
                    table.sets.insert(name.text, values);
                }
                "chain" => self.chain(word, &table)?,
                "comment" => drop(self.need(word)?),
                other => {
                    let what = format!("`{other}` of a table is not a set or a chain: take it out");
                    return Err(word.error(what));
                }
            }
        }
        Err(open.error("the brace is not closed"))
    }

    fn set(&mut self, open: Word<'a>) -> Result<Values<'a>, TextError> {
        let mut values = Vec::new();
        while let Some(word) = self.next() {
            match word.text {
                "}" => return Ok(values),
                "elements" => {
                    let equals = self.expect(word, "=")?;
                    let open = self.expect(equals, "{")?;
                    values.extend(self.list(open)?);
                }
                "timeout" => self.vanishing = true,
                // type, flags, auto-merge, counter.
                "{" => self.skip(word)?,
                _ => {}
            }
        }
        Err(open.error("the brace is not closed"))
    }

    /// The values up to the closing brace.
    fn list(&mut self, open: Word<'a>) -> Result<Values<'a>, TextError> {
        let mut values = Vec::new();
        let mut wanted = true;
        while let Some(word) = self.next() {
            match word.text {
                END => {}
                "}" => return Ok(values),
                "," => wanted = true,
                _ if wanted => {
                    values.push(word);
                    wanted = false;
                }
                // How long a value stays, what it counted and why it is there.
                "timeout" | "expires" => {
                    self.vanishing = true;
                    self.need(word)?;
                }
                "comment" => drop(self.need(word)?),
                "counter" => {}
                "packets" | "bytes" => drop(self.need(word)?),
                other => {
                    let what =
                        format!("`{other}` behind a value: only plain lists of values are read");
                    return Err(word.error(what));
                }
            }
        }
        Err(open.error("the brace is not closed"))
    }

    fn chain(&mut self, word: Word<'a>, table: &Table<'a>) -> Result<(), TextError> {
        let name = self.need(word)?;
        let open = self.expect(name, "{")?;
        let (mut ours, mut policy) = (false, None);
        while let Some(word) = self.next() {
            match word.text {
                END | ";" => {}
                "}" if ours => {
                    let (at, action) = policy.unwrap_or((name, Action::ALLOW));
                    let mut draft = Draft::new();
                    draft.label = Some(format!("policy of {}", name.text));
                    self.of_family(at, &mut draft, table);
                    return draft.finish(at, &action, &mut self.out);
                }
                "}" => {
                    self.others.push(name.text);
                    return Ok(());
                }
                "type" => {
                    let kind = self.need(word)?;
                    let mut device = None;
                    while let Some(word) =
                        self.peek().filter(|word| ![END, ";"].contains(&word.text))
                    {
                        self.at += 1;
                        if word.text == "hook" {
                            let hook = self.need(word)?;
                            ours = hook.text == self.hook && kind.text == "filter";
                        }
                        if matches!(word.text, "device" | "devices") {
                            device = Some(word);
                        }
                    }
                    if let (true, Some(word)) = (ours, device) {
                        return Err(word.error(
                            "the chain sees the packets of one interface: rules cannot express it",
                        ));
                    }
                    if ours {
                        self.chains += 1;
                        if self.chains > 1 {
                            return Err(name.error(
                                "several chains have this hook, and packets go through all of them: leave one in the text",
                            ));
                        }
                    } else {
                        self.others.push(name.text);
                        return self.skip(open);
                    }
                }
                "policy" => {
                    let text = self.need(word)?;
                    let action = match text.text {
                        "accept" => Action::ALLOW,
                        "drop" => Action::Drop,
                        _ => return Err(text.error("accept or drop was expected")),
                    };
                    policy = Some((text, action));
                }
                "comment" if !ours => drop(self.need(word)?),
                _ if ours => {
                    self.at -= 1;
                    self.rule(table)?;
                }
                // A chain without a hook: rules of others jump to it.
                _ => {
                    self.others.push(name.text);
                    return self.skip(open);
                }
            }
        }
        Err(open.error("the brace is not closed"))
    }

    /// Chains of `ip` see IPv4 alone, those of `inet` both.
    fn of_family(&self, at: Word<'a>, draft: &mut Draft<'a>, table: &Table<'a>) {
        let condition = match table.family {
            Some(version) => Condition::Is(version),
            None => Condition::Range(4, 7),
        };
        draft.is(at, Field::IpVersion, condition);
    }

    fn rule(&mut self, table: &Table<'a>) -> Result<(), TextError> {
        let Some(first) = self.peek() else { return Ok(()) };
        let (mut draft, mut action) = (Draft::new(), None);
        self.of_family(first, &mut draft, table);
        while let Some(word) = self.peek().filter(|word| ![END, ";", "}"].contains(&word.text)) {
            self.at += 1;
            if action.is_some() && word.text != "comment" {
                return Err(word.error("nothing may follow what decides"));
            }
            match word.text {
                "accept" => action = Some(Action::ALLOW),
                "drop" => action = Some(Action::Drop),
                "reject" => {
                    action = Some(Action::Drop);
                    // The kind of error for the sender.
                    let ends = [END, ";", "}", "comment"];
                    while self.peek().is_some_and(|word| !ends.contains(&word.text)) {
                        self.at += 1;
                    }
                }
                "comment" => draft.label = Some(unquoted(self.need(word)?.text)),
                "counter" => {
                    for name in ["packets", "bytes"] {
                        if self.peek().is_some_and(|word| word.text == name) {
                            self.at += 2;
                        }
                    }
                }
                _ => self.condition(word, &mut draft, table)?,
            }
        }
        let action = action.ok_or_else(|| {
            first.error("the rule does not decide: accept, drop or reject must be at its end")
        })?;
        draft.finish(first, &action, &mut self.out)
    }

    fn condition(
        &mut self,
        word: Word<'a>,
        draft: &mut Draft<'a>,
        table: &Table<'a>,
    ) -> Result<(), TextError> {
        let what = self.need(word)?;
        let cannot = |word: Word<'a>| {
            word.error(format!(
                "`{} {}` looks at more than addresses, protocol and ports, or does more than decide: rules cannot \
                 express it",
                word.text, what.text
            ))
        };
        match (word.text, what.text) {
            ("ip" | "ip6", "saddr" | "daddr") => {
                let (source, six) = (what.text == "saddr", word.text == "ip6");
                self.values(what, draft, table, |text| {
                    let (field, condition) = values::addresses(text, source)?;
                    let is_six = matches!(field, Field::Ipv6Src | Field::Ipv6Dst);
                    (is_six == six).then_some((field, condition))
                })
            }
            ("ip", "protocol") | ("ip6", "nexthdr") | ("meta", "l4proto") => {
                match word.text {
                    "ip" => draft.is(word, Field::IpVersion, Condition::Is(4)),
                    "ip6" => {
                        draft.is(word, Field::IpVersion, Condition::Is(6));
                        let note = "`ip6 nexthdr` is read as `meta l4proto`: the protocol behind extension headers";
                        if !self.out.notes.iter().any(|other| other == note) {
                            self.out.notes.push(note.to_owned());
                        }
                    }
                    _ => {}
                }
                self.values(what, draft, table, |text| {
                    Some((Field::Protocol, Condition::Is(values::protocol(text)?.into())))
                })
            }
            ("meta", "nfproto") => self.values(what, draft, table, |text| {
                let version = match text {
                    "ipv4" => 4,
                    "ipv6" => 6,
                    _ => return None,
                };
                Some((Field::IpVersion, Condition::Is(version)))
            }),
            ("tcp" | "udp" | "sctp" | "dccp" | "udplite" | "th", "sport" | "dport") => {
                if let Some(number) = values::protocol(word.text) {
                    draft.is(word, Field::Protocol, Condition::Is(number.into()));
                }
                let field = if what.text == "sport" { Field::SrcPort } else { Field::DstPort };
                self.values(what, draft, table, |text| Some((field, values::ports(text, '-')?)))
            }
            ("icmp" | "icmpv6", "type") => {
                let six = word.text == "icmpv6";
                let number = if six { 58 } else { 1 };
                draft.is(word, Field::Protocol, Condition::Is(number));
                self.values(what, draft, table, |text| {
                    Some((Field::IcmpType, Condition::Is(values::icmp_type(text, six)?.into())))
                })
            }
            _ => Err(cannot(word)),
        }
    }

    /// One value, a list in braces or a named set: one of them holds.
    fn values(
        &mut self,
        behind: Word<'a>,
        draft: &mut Draft<'a>,
        table: &Table<'a>,
        read: impl Fn(&str) -> Option<(Field, Condition)>,
    ) -> Result<(), TextError> {
        let word = self.need(behind)?;
        let all = match word.text {
            "{" => self.list(word)?,
            "!=" | "<" | ">" | "<=" | ">=" | "&" | "==" | "vmap" | "map" => {
                return Err(word.error(format!(
                    "`{}` is not a condition that one rule can have: write rules for the rest instead",
                    word.text
                )));
            }
            text => match text.strip_prefix('@') {
                Some(name) => table.sets.get(name).cloned().ok_or_else(|| {
                    word.error(format!("the table has no set `{name}` before this"))
                })?,
                None => vec![word],
            },
        };
        let mut conditions = Vec::new();
        for value in all {
            let condition = read(value.text).ok_or_else(|| {
                value.error(format!(
                    "`{}` is not a value of `{}` that is known",
                    value.text, behind.text
                ))
            })?;
            conditions.push(condition);
        }
        if conditions.is_empty() {
            return Err(
                word.error("the set has no values: no packet matches the rule, take it out")
            );
        }
        draft.one_of(word, conditions);
        Ok(())
    }
}
