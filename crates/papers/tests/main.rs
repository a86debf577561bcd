//! The papers' experiments, on tiny tables.

mod bloomfwd;
mod forms;
mod hpbf;
mod planb;
mod results;

use assert_cmd::Command;

/// Each example of a program's help is a command that it takes.
#[test]
fn examples_of_the_help() {
    let mut seen = 0;
    for program in ["bloomfwd", "compressed", "displaced", "hpbf", "planb", "worst"] {
        let run = |words: &[&str]| {
            let mut command = Command::cargo_bin(program).expect("the binary is built");
            let output = command.args(words).arg("--help").output().expect("it starts");
            assert!(output.status.success(), "{program} {}", words.join(" "));
            String::from_utf8(output.stdout).expect("output is UTF-8")
        };
        let help = run(&[]);
        let (_, examples) = help.split_once("\nExamples:\n").expect("examples");
        for example in examples.lines().take_while(|line| !line.is_empty()) {
            let words: Vec<&str> = example.split_whitespace().collect();
            assert_eq!(words[0], program, "{example}");
            run(&words[1..]);
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen} examples");
}
