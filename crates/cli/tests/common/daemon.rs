//! A command that runs until it is ended, and its log.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The longest that anything is waited for.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// It is killed if it still runs when the test is over.
pub struct Daemon {
    child: Child,
    log: Receiver<Value>,
}

impl Daemon {
    /// Starts `fibula` with these arguments, and a log in JSON.
    pub fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fibula"))
            .env_remove("FIBULA_ISA")
            .args(args)
            .args(["--log", "json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let err = BufReader::new(child.stderr.take().expect("it is a pipe"));
        let (send, log) = mpsc::channel();
        thread::spawn(move || {
            for line in err.lines().map_while(Result::ok) {
                let result = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if send.send(result).is_err() {
                    break;
                }
            }
        });
        Self { child, log }
    }

    /// Waits for a line of the log that begins so; gives its rest.
    pub fn hear(&self, begin: &str) -> String {
        self.hear_at(begin).1
    }

    /// The same, with the line's level.
    pub fn hear_at(&self, begin: &str) -> (String, String) {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let result =
                self.log.recv_timeout(left).unwrap_or_else(|e| panic!("no {begin:?}: {e}"));
            let text = result["message"].as_str().unwrap_or_else(|| panic!("no JSON: {result}"));
            if let Some(rest) = text.strip_prefix(begin) {
                let level = result["level"].as_str().expect("lines have a level");
                return (level.to_owned(), rest.to_owned());
            }
        }
    }

    /// Waits for a line of the log that is so; gives the lines before it.
    pub fn hear_until(&self, text: &str) -> Vec<String> {
        let until = Instant::now() + PATIENCE;
        let mut before = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.log.recv_timeout(left);
            let line = line.unwrap_or_else(|e| panic!("no {text:?} behind {before:#?}: {e}"));
            match line["message"].as_str() {
                Some(line) if line == text => return before,
                line => before.push(line.unwrap_or_default().to_owned()),
            }
        }
    }

    /// Stops reading the log: once two more lines were written, its pipe has no reader.
    pub fn stop_hearing(&mut self) {
        self.log = mpsc::channel().1;
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &pid]).status();
        assert!(sent.expect("kill is there").success());
    }

    /// Waits for its end; gives its standard output, and the exit code if no signal ended it.
    pub fn end(&mut self) -> (String, Option<i32>) {
        let mut out = String::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_string(&mut out).expect("output is UTF-8");
        }
        (out, self.child.wait().expect("it is a child").code())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
