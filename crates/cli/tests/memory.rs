//! `fibula export --to memory`: the memories of a pipeline, read back and looked up in as hardware does.

use std::collections::HashMap;
use std::fs;

use crate::common::{Files, done, execute};

/// Memories by name, with the words that are not zero.
struct Pipeline {
    names: Vec<String>,
    words: HashMap<(String, u64), u64>,
}

impl Pipeline {
    fn load(folder: &str) -> Self {
        let map = fs::read_to_string(format!("{folder}/map.json")).unwrap();
        let map: serde_json::Value = serde_json::from_str(&map).unwrap();
        let (mut names, mut words) = (Vec::new(), HashMap::new());
        for memory in map["memories"].as_array().unwrap() {
            let name = memory["name"].as_str().unwrap();
            names.push(name.to_owned());
            let (mut address, depth) = (0, memory["depth"].as_u64().unwrap());
            let file = format!("{folder}/{}", memory["file"].as_str().unwrap());
            for line in fs::read_to_string(file).unwrap().lines().skip(1) {
                if let Some(at) = line.strip_prefix('@') {
                    address = u64::from_str_radix(at, 16).unwrap();
                    continue;
                }
                assert!(address < depth, "{name}: {address} of {depth}");
                words.insert((name.to_owned(), address), u64::from_str_radix(line, 16).unwrap());
                address += 1;
            }
        }
        Self { names, words }
    }

    fn word(&self, memory: &str, address: u64) -> u64 {
        self.words.get(&(memory.to_owned(), address)).copied().unwrap_or(0)
    }

    fn bit(&self, memory: &str, bit: u64) -> bool {
        self.word(memory, bit / 64) >> (bit % 64) & 1 != 0
    }

    fn sail_l(&self, key: u64) -> u64 {
        let level16 = self.word("BC16", key >> 16);
        if level16 >> 16 == 0 {
            return self.word("N16", key >> 16);
        }
        let place = (level16 & 0xffff) << 8 | key >> 8 & 0xff;
        match self.bit("B24", place) {
            true => self.word("N24", place),
            false => self.word("N32", self.word("C24", place) << 8 | key & 0xff),
        }
    }

    fn sail_u(&self, key: u64) -> u64 {
        let starts = [(24, 64 + 4096 + (1 << 18)), (18, 64 + 4096), (12, 64), (6, 0)];
        for (level, start) in starts {
            let node = key >> (32 - level);
            if !self.bit(&format!("B{level}"), node) {
                continue;
            }
            let chunk = if level == 24 { self.word("C24", node) } else { 0 };
            let code = match chunk {
                0 => 0,
                chunk => self.word("N32", (chunk - 1) << 8 | key & 0xff),
            };
            let code = if code == 0 { self.word("N", start + node) } else { code };
            if code != 0 {
                return code;
            }
        }
        0
    }
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap()
}

#[test]
fn the_memories_answer_as_the_engine_before_and_after_each_update() {
    let files = Files::new();
    for (engine, lookup) in
        [("sail-l", Pipeline::sail_l as fn(&Pipeline, u64) -> u64), ("sail-u", Pipeline::sail_u)]
    {
        let folder = files.path(engine);
        let args = ["--engine", engine, "--keys", "300", "--updates", "60", "-o", &folder];
        done(&[&["export", "gen:v4:2024:1500:1", "--to", "memory"][..], &args].concat());
        let mut pipeline = Pipeline::load(&folder);
        let keys = fs::read_to_string(format!("{folder}/keys.txt")).unwrap();
        assert!(keys.lines().count() > 1500 + 300, "{engine}");
        for (key, answer) in keys.lines().map(|line| line.split_once(' ').unwrap()) {
            assert_eq!(lookup(&pipeline, hex(key)), hex(answer), "{engine} {key}");
        }
        let mut after = Vec::new();
        let updates = fs::read_to_string(format!("{folder}/updates.txt")).unwrap();
        for line in updates.lines().chain(["u end"]) {
            let fields: Vec<&str> = line.split(' ').collect();
            match fields[..] {
                ["u", _, ..] => {
                    for (key, answer) in after.drain(..) {
                        assert_eq!(
                            lookup(&pipeline, key),
                            answer,
                            "{engine} {key:x} before {line}"
                        );
                    }
                }
                ["k", key, before, then] => {
                    assert_eq!(lookup(&pipeline, hex(key)), hex(before), "{engine} {line}");
                    after.push((hex(key), hex(then)));
                }
                ["w", memory, address, word] => {
                    let name = pipeline.names[memory.parse::<usize>().unwrap()].clone();
                    pipeline.words.insert((name, hex(address)), hex(word));
                }
                ["d"] => {}
                _ => panic!("{engine}: {line}"),
            }
        }
    }
}

#[test]
fn every_scheme_with_a_pipeline_is_written() {
    let files = Files::new();
    for (table, engine, memories) in [
        ("gen:v4:2024:500:1", "planb", 3),
        ("gen:v6:2024:500:1", "planb", 3),
        ("gen:v4:2024:500:1", "dxr18", 2),
        ("gen:v4:2024:500:1", "runmap", 5),
    ] {
        let folder = files.path(&format!("{engine}{}", table.as_bytes()[5]));
        done(&["export", table, "--to", "memory", "--engine", engine, "-o", &folder]);
        let map = fs::read_to_string(format!("{folder}/map.json")).unwrap();
        let map: serde_json::Value = serde_json::from_str(&map).unwrap();
        assert!(map["memories"].as_array().unwrap().len() >= memories, "{engine}: {map}");
    }
}

#[test]
fn what_cannot_be_memories_is_refused() {
    let files = Files::new();
    let folder = files.path("folder");
    let table = "gen:v4:2024:100:1";
    for (args, said) in [
        (&["--to", "memory"][..], "name a folder"),
        (&["--to", "memory", "-o", &folder, "--engine", "radix"], "has no pipeline"),
        (&["--to", "memory", "-o", &folder, "--engine", "nothing"], "no engine is called"),
        (&["--to", "memory", "-o", &folder, "--engine", "matchline"], "other family"),
        (&["--to", "memory", "-o", &folder, "--engine", "planb", "--updates", "1"], "word by word"),
        (&["--to", "csv", "--keys", "1"], "are for --to memory"),
    ] {
        let run = execute(&[&["export", table][..], args].concat());
        assert!(run.code == 2 && run.err.contains(said), "{args:?}: {}", run.err);
    }
    assert!(!fs::exists(&folder).unwrap());
}
