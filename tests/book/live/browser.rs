//! Dumps of the live page from a browser, after the page has shown the report.

use crate::browser::browse;
use gemm_book::live::FILE;
use libtest_mimic::Failed;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Delays of an image, in milliseconds. The browser dumps the page after the image has loaded. The
/// delays are tried in this order until the page is done.
const WAITS: [u64; 4] = [1_000, 4_000, 15_000, 60_000];

pub(super) fn attribute<'h>(html: &'h str, name: &str) -> Option<&'h str> {
    html.split_once(&format!("{name}=\""))?.1.split_once('"').map(|(value, _)| value)
}

/// Returns the page after it has run the spec in an address. The browser dumps a page as soon as it
/// is loaded. The tested copy therefore contains an image that loads slowly, and its policy allows
/// the image.
pub(super) fn shown(html: &str, address: &str, arguments: &[&str]) -> Result<String, Failed> {
    let is_over = |shown: &str| matches!(attribute(shown, "data-state"), Some("done" | "failed"));
    shown_when(html, address, arguments, &is_over)
}

/// Does the same as [`shown`], with another condition for the end.
pub(super) fn shown_when(
    html: &str,
    address: &str,
    arguments: &[&str],
    is_over: &dyn Fn(&str) -> bool,
) -> Result<String, Failed> {
    let arguments = [&["--dump-dom"], arguments].concat();
    for wait in WAITS {
        let server = Server::new("", Duration::from_millis(wait))?;
        let policy = format!("'wasm-unsafe-eval'; img-src {}", server.address);
        let image = format!("<img src=\"{}/image\" alt=\"\"></body>", server.address);
        let quoted = html.replacen("&#39;wasm-unsafe-eval&#39;", &policy, 1);
        let copy = quoted.replacen("</body>", &image, 1);
        let output = browse(FILE, &copy, address, &arguments)?;
        let said = String::from_utf8_lossy(&output.stderr);
        if let Some(line) = said.lines().find(|line| line.contains("CONSOLE")) {
            return Err(line.into());
        }
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        if is_over(&shown) {
            return Ok(shown);
        }
    }
    Err("the page shows no report".into())
}

/// Serves a page, and later an invalid image.
pub(super) struct Server {
    pub(super) address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(super) fn new(html: &str, wait: Duration) -> Result<Self, Failed> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}", listener.local_addr()?);
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (html, kept) = (html.to_owned(), Arc::clone(&requests));
        // The thread ends with the test process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (html, kept) = (html.clone(), Arc::clone(&kept));
                thread::spawn(move || serve(stream, &html, wait, &kept));
            }
        });
        Ok(Self { address, requests })
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Responds to a request. Errors of aborted requests are ignored.
fn serve(
    mut stream: TcpStream,
    html: &str,
    wait: Duration,
    requests: &Mutex<Vec<String>>,
) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let path = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
    lines.find(|line| line.as_ref().is_ok_and(String::is_empty))?.ok()?;
    requests.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
    let is_page = path.ends_with(FILE);
    let (status, body) = if is_page { ("200 OK", html) } else { ("204 No Content", "") };
    if !is_page {
        thread::sleep(wait);
    }
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: \
         close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()
}
