//! The picture of the README: `preview`, the roll, then `why`, as printed by this run.

use std::path::Path;
use std::process::Command;

use anstyle::{Color, RgbColor};
use anstyle_svg::{Term, VGA, WIN10_CONSOLE};
use anyhow::{Context as _, Result, ensure};

/// Columns of the pictured terminal.
const COLUMNS: usize = 118;
/// Maximum number of lines of each output.
const MAX_LINES: usize = 14;
/// Name of the program in a prompt.
const PROGRAM: &str = "gardener-extension-worker";

/// The content of a terminal: prompts with their outputs.
#[derive(Default)]
pub(crate) struct Picture(String);

impl Picture {
    /// Runs a command of the program and adds it with its output. `displayed` contains the arguments as a reader would
    /// type them.
    pub(crate) fn run(&mut self, displayed: &str, arguments: &[&str], kubeconfig: &Path) -> Result<()> {
        let own_binary = std::env::current_exe().context("finding this program")?;
        let mut command = Command::new(own_binary);
        command.args(arguments).current_dir(test_support::repository());
        command.env("COLUMNS", COLUMNS.to_string()).env("CLICOLOR_FORCE", "1").env("KUBECONFIG", kubeconfig);
        let output = command.output().with_context(|| format!("running {displayed}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(!text.trim().is_empty(), "{displayed} printed nothing: {}", String::from_utf8_lossy(&output.stderr));
        self.add(&format!("{PROGRAM} {displayed}"), text.lines());
        Ok(())
    }

    /// Adds a prompt with its output, shortened.
    pub(crate) fn add<'a>(&mut self, prompt: &str, lines: impl Iterator<Item = &'a str>) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(&format!("\x1b[1m$ {prompt}\x1b[0m\n"));
        let mut lines: Vec<String> = lines.map(shortened).collect();
        if lines.len() > MAX_LINES {
            lines.splice(MAX_LINES - 2..lines.len() - 1, ["…".to_owned()]);
        }
        for line in lines {
            self.0.push_str(&line);
            self.0.push('\n');
        }
    }

    /// Writes `roll-light.svg` and `roll-dark.svg`.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder)?;
        let light = ("light", RgbColor(0x24, 0x29, 0x2f), RgbColor(0xff, 0xff, 0xff));
        let dark = ("dark", RgbColor(0xe6, 0xed, 0xf3), RgbColor(0x0d, 0x11, 0x17));
        for ((name, foreground, background), palette) in [(light, VGA), (dark, WIN10_CONSOLE)] {
            let term = Term::new().palette(palette).fg_color(Color::Rgb(foreground)).bg_color(Color::Rgb(background));
            let file = folder.join(format!("roll-{name}.svg"));
            std::fs::write(&file, term.render_svg(&self.0)).with_context(|| format!("writing {}", file.display()))?;
        }
        Ok(())
    }
}

/// The line up to the last column. Styles occupy no column.
fn shortened(line: &str) -> String {
    let mut columns = 0;
    let mut is_style = false;
    let mut shortened = String::new();
    for letter in line.trim_end().chars() {
        is_style |= letter == '\x1b';
        columns += usize::from(!is_style);
        if columns < COLUMNS || is_style {
            shortened.push(letter);
        } else if columns == COLUMNS {
            shortened.push('…');
        }
        is_style &= letter != 'm';
    }
    shortened
}
