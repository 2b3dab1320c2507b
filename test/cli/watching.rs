//! `--watch` on a terminal: each response replaces the previous one.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::binary::{command, outcome};
use crate::objects::{COMMANDS, NAMESPACE, Server, seed_objects};

/// An object that some commands print, and that is removed between two responses.
const REMOVED: &str = "shoot--garden--prod-workers-z2";
/// Longest wait for a response.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A program in a pseudo-terminal of `script`.
struct PseudoTerminal {
    script: Child,
    output: Receiver<Vec<u8>>,
}

impl PseudoTerminal {
    /// Starts a command. Returns `None` if `script` is not installed.
    fn start(program: &Command) -> Option<Self> {
        let words = std::iter::once(program.get_program()).chain(program.get_args());
        let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
        let mut script = Command::new("script");
        script
            .args(["--quiet", "--flush", "--command", &words.join(" "), "/dev/null"])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => script.env(name, value),
                None => script.env_remove(name),
            };
        }
        let Ok(mut script) = script.stdin(Stdio::null()).stdout(Stdio::piped()).spawn() else {
            eprintln!("skipped: no `script` here (Debian: bsdutils)");
            return None;
        };
        let mut stdout = script.stdout.take().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(length @ 1..) = stdout.read(&mut part) {
                if sender.send(part[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        Some(Self { script, output })
    }
}

impl Drop for PseudoTerminal {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

/// The visible screen: its lines after all output so far.
#[derive(Default)]
struct Display {
    bytes: Vec<u8>,
}

impl Display {
    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.bytes).into_owned();
        let mut lines = vec![String::new()];
        let (mut row, mut column) = (0, 0);
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\r' => column = 0,
                '\n' => row += 1,
                '\u{1b}' => match sequence(&mut letters).as_deref() {
                    Some("[H") => (row, column) = (0, 0),
                    Some("[J") => {
                        lines.truncate(row + 1);
                        lines[row] = lines[row].chars().take(column).collect();
                    }
                    Some(other) if other.ends_with('m') => {}
                    None => break,
                    Some(other) => panic!("unexpected sequence {other:?}"),
                },
                letter => {
                    let mut line: Vec<char> = lines[row].chars().collect();
                    line.resize(line.len().max(column + 1), ' ');
                    line[column] = letter;
                    lines[row] = line.into_iter().collect();
                    column += 1;
                }
            }
            lines.resize(lines.len().max(row + 1), String::new());
        }
        lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
    }
}

/// The rest of an escape sequence, or `None` if it is incomplete.
fn sequence(letters: &mut std::str::Chars<'_>) -> Option<String> {
    let mut sequence = String::new();
    for letter in letters {
        sequence.push(letter);
        if letter.is_ascii_alphabetic() {
            return Some(sequence);
        }
    }
    None
}

/// Lines without digits, because ages change between two responses.
fn without_ages(text: &str) -> Vec<String> {
    let plain = |line: &str| line.trim_end().replace(|letter: char| letter.is_ascii_digit(), "");
    let mut lines: Vec<String> = text.lines().map(plain).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

#[test]
fn watch_redraws_on_terminal() {
    let mut changed = Vec::new();
    for words in COMMANDS {
        let seed = Server::seed(seed_objects());
        let kubeconfig = seed.serve();
        let path = kubeconfig.path().to_str().unwrap();
        let of = |more: &[&str]| {
            let mut command = command(&[words, &["-n", NAMESPACE, "--kubeconfig", path], more].concat());
            command.env("COLUMNS", "100").env("TERM", "xterm");
            command
        };
        let response = || without_ages(&outcome(of(&[]), "").stdout);
        let first = response();
        let Some(terminal) = PseudoTerminal::start(&of(&["-w"])) else { return };
        let mut display = Display::default();
        wait_for(&terminal, &mut display, &first, words);
        seed.objects.lock().unwrap().retain(|object| object["metadata"]["name"] != REMOVED);
        let second = response();
        if first != second {
            wait_for(&terminal, &mut display, &second, words);
            changed.push(words);
        }
    }
    assert!(changed.contains(&&["diagnose"][..]) && changed.len() > 1, "the object is only in {changed:?}");
}

/// Waits until the screen shows exactly the response.
fn wait_for(terminal: &PseudoTerminal, display: &mut Display, response: &[String], words: &[&str]) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let displayed = without_ages(&display.lines().join("\n"));
        if displayed == response {
            return;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(part) = terminal.output.recv_timeout(left) else {
            panic!("{words:?}: the screen has {displayed:#?}\ninstead of {response:#?}");
        };
        display.bytes.extend(part);
    }
}
