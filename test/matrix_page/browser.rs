//! A headless Chromium, driven over WebDriver.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The JSON member in which WebDriver returns elements.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// Longer than any request takes, even on a busy machine.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// A browser with one window.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: tempfile::TempDir,
}

/// The user's view of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) device: Device,
    pub(crate) colours: Colours,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    Desk,
    Phone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colours {
    Light,
    Dark,
}

impl Device {
    /// Width and height of its window.
    pub(crate) fn size(self) -> [u64; 2] {
        match self {
            Self::Desk => [1400, 900],
            Self::Phone => [390, 844],
        }
    }
}

impl View {
    pub(crate) const ALL: [Self; 4] = [
        Self { device: Device::Desk, colours: Colours::Light },
        Self { device: Device::Desk, colours: Colours::Dark },
        Self { device: Device::Phone, colours: Colours::Light },
        Self { device: Device::Phone, colours: Colours::Dark },
    ];
    pub(crate) const PHONE: Self = Self { device: Device::Phone, colours: Colours::Light };
}

/// An element of the page.
#[derive(Clone, Debug)]
pub(crate) struct Element(String);

impl Browser {
    /// Starts a browser. Returns `None`, with a message, if none is installed.
    pub(crate) fn start() -> Option<Self> {
        let (Some(driver), Some(chromium)) = (found(&["chromedriver"]), found(&["chromium", "google-chrome"])) else {
            eprintln!("skipped: no Chromium with its driver here (Debian: apt-get install chromium chromium-driver)");
            return None;
        };
        let mut driver =
            Command::new(driver).arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let port = port_of(&mut driver);
        let profile = tempfile::tempdir().unwrap();
        let mut browser = Self { driver, port, session: String::new(), _profile: profile };
        let folder = format!("--user-data-dir={}", browser._profile.path().display());
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1400,900",
            // No host name is resolved, because the page must work without a network.
            "--host-resolver-rules=MAP * ~NOTFOUND",
            &folder,
        ];
        let expected = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"binary": chromium, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let session = browser.request("POST", "/session", &expected);
        browser.session = session["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {session}")).to_owned();
        Some(browser)
    }

    pub(crate) fn open(&self, file: &Path) {
        self.command("POST", "/url", &json!({"url": format!("file://{}", file.display())}));
    }

    /// Opens a location of the page that is open.
    pub(crate) fn open_location(&self, file: &Path, location: &str) {
        self.command("POST", "/url", &json!({"url": "about:blank"}));
        self.command("POST", "/url", &json!({"url": format!("file://{}{location}", file.display())}));
    }

    /// Sets the window to the size of a device, and the page to its colours.
    pub(crate) fn show_as(&self, view: View) {
        let [width, height] = view.device.size();
        self.develop(
            "Emulation.setDeviceMetricsOverride",
            &json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": view.device == Device::Phone}),
        );
        let scheme = match view.colours {
            Colours::Light => "light",
            Colours::Dark => "dark",
        };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.develop("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// Writes a screenshot into the folder in the variable `PAGE_PICTURES`, for manual inspection.
    pub(crate) fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("PAGE_PICTURES") else { return };
        let picture = self.command("GET", "/screenshot", &Value::Null);
        let picture = STANDARD.decode(picture.as_str().unwrap()).unwrap();
        std::fs::write(PathBuf::from(folder).join(format!("{name}.png")), picture).unwrap();
    }

    fn develop(&self, command: &str, parameters: &Value) {
        self.command("POST", "/goog/cdp/execute", &json!({"cmd": command, "params": parameters}));
    }

    /// Runs a script and returns its result.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.command("POST", "/execute/sync", &json!({"script": script, "args": []}))
    }

    pub(crate) fn element(&self, selector: &str) -> Element {
        self.elements(selector).into_iter().next().unwrap_or_else(|| panic!("no {selector} on the page"))
    }

    pub(crate) fn elements(&self, selector: &str) -> Vec<Element> {
        let found = self.command("POST", "/elements", &json!({"using": "css selector", "value": selector}));
        let ids = found.as_array().unwrap().iter().map(|element| element[ELEMENT].as_str().unwrap().to_owned());
        ids.map(Element).collect()
    }

    pub(crate) fn text(&self, selector: &str) -> String {
        let Element(id) = self.element(selector);
        self.command("GET", &format!("/element/{id}/text"), &Value::Null).as_str().unwrap().to_owned()
    }

    /// Role and label of an element in the accessibility tree, as a screen reader receives them.
    pub(crate) fn spoken(&self, Element(id): &Element) -> (String, String) {
        let of =
            |what| self.command("GET", &format!("/element/{id}/{what}"), &Value::Null).as_str().unwrap().to_owned();
        (of("computedrole"), of("computedlabel"))
    }

    /// Clicks, and waits until the effects in the next frame are drawn.
    pub(crate) fn click(&self, selector: &str) {
        let Element(id) = self.element(selector);
        self.command("POST", &format!("/element/{id}/click"), &json!({}));
        self.run(
            "return new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))",
        );
    }

    /// Replaces the text of an element.
    pub(crate) fn type_into(&self, selector: &str, text: &str) {
        let Element(id) = self.element(selector);
        self.command("POST", &format!("/element/{id}/clear"), &json!({}));
        self.command("POST", &format!("/element/{id}/value"), &json!({"text": text}));
    }

    /// Presses keys one after the other, in the focused element.
    pub(crate) fn press(&self, keys: &[Key]) {
        let actions: Vec<Value> = keys
            .iter()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key.code()})))
            .collect();
        self.command("POST", "/actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}));
    }

    /// The browser's errors and warnings so far.
    pub(crate) fn complaints(&self) -> Vec<Value> {
        let log = self.command("POST", "/se/log", &json!({"type": "browser"}));
        log.as_array().unwrap().iter().filter(|entry| entry["level"] != "INFO").cloned().collect()
    }

    fn command(&self, method: &str, path: &str, body: &Value) -> Value {
        self.request(method, &format!("/session/{}{path}", self.session), body)
    }

    fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        let value = self.exchange(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        assert!(value.get("error").is_none(), "{method} {path}: {value}");
        value
    }

    fn exchange(&self, method: &str, path: &str, body: &Value) -> std::io::Result<Value> {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes())?;
        let mut result: Value = serde_json::from_slice(&read_body(stream)?)?;
        Ok(result["value"].take())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends its Chromium with the session. A driver that has exited has nothing to end.
        let _ = self.exchange("DELETE", &format!("/session/{}", self.session), &Value::Null);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// A key that is not a letter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Key {
    Tab,
    Enter,
    Right,
    Down,
    Home,
    End,
    PageDown,
}

impl Key {
    fn code(self) -> &'static str {
        match self {
            Self::Tab => "\u{e004}",
            Self::Enter => "\u{e007}",
            Self::Right => "\u{e014}",
            Self::Down => "\u{e015}",
            Self::Home => "\u{e011}",
            Self::End => "\u{e010}",
            Self::PageDown => "\u{e00f}",
        }
    }
}

fn found(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let files = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files.into_iter().find(|file| file.is_file())
}

/// The port that the driver reports.
fn port_of(driver: &mut Child) -> u16 {
    let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    for line in lines.map_while(Result::ok) {
        if let Some((_, port)) = line.split_once("started successfully on port ") {
            return port.trim_end_matches('.').parse().unwrap();
        }
    }
    panic!("the driver of Chromium ended before it said where it listens");
}

fn read_body(stream: TcpStream) -> std::io::Result<Vec<u8>> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}
