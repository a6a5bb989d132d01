//! Browser session in which pages are opened one after the other. It uses the DevTools protocol on
//! a pipe, so that pages need no changes and their policy and scripts are unaffected.

use gemm_needs::BROWSER;
use libtest_mimic::Failed;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::ops::{Deref, DerefMut};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// Shell script that connects the browser's file 3 (requests) and file 4 (responses) to the
/// script's input and output.
const PIPES: &str = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";

/// Browser process with one open page at a time.
pub struct Browser {
    browser: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
    asked: u64,
    /// Page; None before the first one.
    page: Option<Page>,
    folder: TempDir,
    /// Console messages of the open page.
    complaints: Vec<String>,
    loaded: u64,
}

/// Identifiers of a page.
struct Page {
    target: String,
    session: String,
}

/// New page of a browser. The next session uses the browser again, because a browser needs seconds
/// of CPU time to start.
pub struct Session(Option<Browser>);

/// Browsers without a session.
static IDLE: Mutex<Vec<Browser>> = Mutex::new(Vec::new());

fn idle() -> MutexGuard<'static, Vec<Browser>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends all browsers without a session.
pub fn end_idle() {
    idle().clear();
}

impl Session {
    /// Opens an empty page, in a browser without a session or in a new one.
    pub fn start() -> Result<Self, Failed> {
        let known = idle().pop();
        let mut browser = match known {
            Some(browser) => browser,
            None => Browser::start()?,
        };
        browser.renew_page()?;
        Ok(Self(Some(browser)))
    }
}

impl Deref for Session {
    type Target = Browser;

    fn deref(&self) -> &Browser {
        self.0.as_ref().unwrap_or_else(|| unreachable!("start: the session has a browser"))
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Browser {
        self.0.as_mut().unwrap_or_else(|| unreachable!("start: the session has a browser"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        idle().extend(self.0.take());
    }
}

impl Browser {
    fn start() -> Result<Self, Failed> {
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
        Ok(Self { browser, asks, answers, asked: 0, page: None, folder, complaints, loaded: 0 })
    }

    /// Replaces the page by an empty one, without the old one's state and pointer.
    fn renew_page(&mut self) -> Result<(), Failed> {
        let old = self.page.take();
        let made = self.ask("Target.createTarget", json!({ "url": "about:blank" }))?;
        let target = made["targetId"].as_str().ok_or("a page has an identifier")?.to_owned();
        let attach = json!({ "targetId": target, "flatten": true });
        let attached = self.ask("Target.attachToTarget", attach)?;
        let session = attached["sessionId"].as_str().ok_or("a page has a session")?.to_owned();
        if let Some(old) = old {
            self.ask("Target.closeTarget", json!({ "targetId": old.target }))?;
        }
        self.page = Some(Page { target, session });
        for domain in ["Page", "Runtime", "Log"] {
            self.ask(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(())
    }

    /// Opens a page as a file of this name, with `address` appended, and waits until it is loaded.
    pub fn open(&mut self, name: &str, html: &str, address: &str) -> Result<(), Failed> {
        let path = self.folder.path().join(name);
        fs::write(&path, html)?;
        // The old page is left first, because a change of only the fragment would not reload it.
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

    /// Sets the size of the window in pixels.
    pub fn size(&mut self, width: u32, height: u32) -> Result<(), Failed> {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.ask("Emulation.setDeviceMetricsOverride", size).map(drop)
    }

    /// Sets the medium, `screen` or `print`, and the colour scheme, `light` or `dark`.
    pub fn medium(&mut self, medium: &str, scheme: &str) -> Result<(), Failed> {
        let scheme = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.ask("Emulation.setEmulatedMedia", json!({ "media": medium, "features": scheme }))
            .map(drop)
    }

    /// Evaluates a JavaScript expression in the page and awaits its result.
    pub fn value(&mut self, expression: &str) -> Result<Value, Failed> {
        let asked =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.ask("Runtime.evaluate", asked)?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(details.to_string().into()),
            None => Ok(answer["result"]["value"].take()),
        }
    }

    /// Moves the pointer to a position in the window.
    pub fn point(&mut self, [x, y]: [f64; 2]) -> Result<(), Failed> {
        self.ask("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y }))
            .map(drop)
    }

    /// Clicks the centre of the element that a JavaScript expression returns.
    pub fn click_on(&mut self, element: &str) -> Result<(), Failed> {
        let place = self.value(&format!(
            "{{ const element = {element};
             element.scrollIntoView({{ block: 'center', inline: 'center' }});
             const box = element.getBoundingClientRect();
             [box.x + box.width / 2, box.y + box.height / 2]; }}"
        ))?;
        self.click(serde_json::from_value(place)?)
    }

    pub fn click(&mut self, [x, y]: [f64; 2]) -> Result<(), Failed> {
        self.point([x, y])?;
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.ask("Input.dispatchMouseEvent", event)?;
        }
        Ok(())
    }

    /// Presses a key, given by its name, in the focused element.
    pub fn press(&mut self, key: &str, code: u32) -> Result<(), Failed> {
        for kind in ["rawKeyDown", "keyUp"] {
            let event =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            self.ask("Input.dispatchKeyEvent", event)?;
        }
        Ok(())
    }

    /// Current HTML of the page.
    pub fn shown(&mut self) -> Result<String, Failed> {
        let html = self.value("document.documentElement.outerHTML")?;
        Ok(html.as_str().ok_or("a page is text")?.to_owned())
    }

    /// Messages that the page logged to the console.
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// Sends a request to the page, or to the browser if there is no page, and waits for the
    /// response.
    fn ask(&mut self, method: &str, parameters: Value) -> Result<Value, Failed> {
        self.asked += 1;
        let mut message = json!({ "id": self.asked, "method": method, "params": parameters });
        if let Some(page) = &self.page {
            message["sessionId"] = page.session.as_str().into();
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

    /// Reads the next message. Events of the page are kept.
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

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser may have exited already.
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}
