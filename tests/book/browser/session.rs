//! A browser that stays, in which one page is opened after the other: spoken to by its own protocol, over a pipe. What is done to a
//! page and asked of it here needs no change of the page, and neither its policy nor its scripts know of it.

use gemm_tests::needs::BROWSER;
use libtest_mimic::Failed;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;

/// The browser reads what it is asked from file 3 and answers to file 4, which a shell makes of its own input and output.
const PIPES: &str = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";

/// One page at a time.
pub struct Session {
    browser: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
    asked: u64,
    /// Which page the browser is asked about; none before there is one.
    target: Option<String>,
    folder: TempDir,
    /// What the page that is open has made the browser say.
    complaints: Vec<String>,
    loaded: u64,
}

impl Session {
    /// Starts a browser.
    pub fn start() -> Result<Self, Failed> {
        let arguments =
            ["--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"];
        let mut browser = Command::new("sh")
            .args(["-c", PIPES, BROWSER])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let asks = browser.stdin.take().ok_or("the browser reads")?;
        let answers = BufReader::new(browser.stdout.take().ok_or("the browser writes")?);
        let (folder, complaints) = (tempfile::tempdir()?, Vec::new());
        let mut session =
            Self { browser, asks, answers, asked: 0, target: None, folder, complaints, loaded: 0 };
        let page = session.ask("Target.createTarget", json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        let attached = session.ask("Target.attachToTarget", attach)?;
        session.target = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            session.ask(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(session)
    }

    /// Opens a page as a file of that name, at what follows it in the address, and waits until it is loaded.
    pub fn open(&mut self, name: &str, html: &str, address: &str) -> Result<(), Failed> {
        let path = self.folder.path().join(name);
        fs::write(&path, html)?;
        // From elsewhere, or another address of a page that is open would not load it.
        self.go("about:blank")?;
        self.complaints.clear();
        self.go(&format!("file://{}{address}", path.display()))
    }

    fn go(&mut self, url: &str) -> Result<(), Failed> {
        let loaded = self.loaded;
        self.ask("Page.navigate", json!({ "url": url }))?;
        while self.loaded == loaded {
            self.next()?;
        }
        Ok(())
    }

    /// The window, in pixels.
    pub fn size(&mut self, width: u32, height: u32) -> Result<(), Failed> {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.ask("Emulation.setDeviceMetricsOverride", size).map(drop)
    }

    /// Whether it is on a `screen` or in `print`, `light` or `dark`.
    pub fn medium(&mut self, medium: &str, scheme: &str) -> Result<(), Failed> {
        let scheme = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.ask("Emulation.setEmulatedMedia", json!({ "media": medium, "features": scheme }))
            .map(drop)
    }

    /// What an expression of JavaScript comes to in the page, once that is settled.
    pub fn value(&mut self, expression: &str) -> Result<Value, Failed> {
        let asked =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.ask("Runtime.evaluate", asked)?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(details.to_string().into()),
            None => Ok(answer["result"]["value"].take()),
        }
    }

    /// Moves the pointer to a place of the window.
    pub fn point(&mut self, [x, y]: [f64; 2]) -> Result<(), Failed> {
        self.ask("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y }))
            .map(drop)
    }

    /// Clicks what an expression of JavaScript comes to, in its middle.
    pub fn click_on(&mut self, element: &str) -> Result<(), Failed> {
        let place = self.value(&format!(
            "{{ const element = {element}; element.scrollIntoView({{ block: 'center', inline: 'center' }});
             const box = element.getBoundingClientRect(); [box.x + box.width / 2, box.y + box.height / 2]; }}"
        ))?;
        self.click(serde_json::from_value(place)?)
    }

    /// Moves it there and presses its button.
    pub fn click(&mut self, [x, y]: [f64; 2]) -> Result<(), Failed> {
        self.point([x, y])?;
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.ask("Input.dispatchMouseEvent", event)?;
        }
        Ok(())
    }

    /// Presses a key, by its name, where the focus is.
    pub fn press(&mut self, key: &str, code: u32) -> Result<(), Failed> {
        for kind in ["rawKeyDown", "keyUp"] {
            let event =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            self.ask("Input.dispatchKeyEvent", event)?;
        }
        Ok(())
    }

    /// The page as it is now.
    pub fn shown(&mut self) -> Result<String, Failed> {
        let html = self.value("document.documentElement.outerHTML")?;
        Ok(html.as_str().ok_or("a page is text")?.to_owned())
    }

    /// What the page has made the browser say in its console.
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// Asks the browser, or the page if there is one, and waits for the answer.
    fn ask(&mut self, method: &str, parameters: Value) -> Result<Value, Failed> {
        self.asked += 1;
        let mut message = json!({ "id": self.asked, "method": method, "params": parameters });
        if let Some(target) = &self.target {
            message["sessionId"] = target.as_str().into();
        }
        self.asks.write_all(message.to_string().as_bytes())?;
        self.asks.write_all(b"\0")?;
        self.asks.flush()?;
        loop {
            let mut message = self.next()?;
            if message["id"] == self.asked {
                return match message.get("error") {
                    Some(error) => Err(format!("{method}: {error}").into()),
                    None => Ok(message["result"].take()),
                };
            }
        }
    }

    /// What the browser says next: what happens in a page is kept.
    fn next(&mut self) -> Result<Value, Failed> {
        let mut bytes = Vec::new();
        self.answers.read_until(0, &mut bytes)?;
        if bytes.pop() != Some(0) {
            return Err(format!("{BROWSER} has ended").into());
        }
        let message: Value = serde_json::from_slice(&bytes)?;
        let said = match message["method"].as_str() {
            Some("Page.loadEventFired") => {
                self.loaded += 1;
                None
            }
            Some("Runtime.consoleAPICalled") => Some(&message["params"]["args"]),
            Some("Runtime.exceptionThrown") => Some(&message["params"]["exceptionDetails"]),
            Some("Log.entryAdded") => Some(&message["params"]["entry"]),
            _ => None,
        };
        self.complaints.extend(said.map(Value::to_string));
        Ok(message)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It may have ended, which is what is wanted.
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}
