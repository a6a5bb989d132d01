//! Pages in a real browser, without a window.

use crate::pages;
use gemm_tests::needs::{self, BROWSER, Need};
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::process::{Command, Output};

/// Of so many pages one is laid out for a phone.
const EVERY: usize = 5;

pub fn trials() -> Vec<Trial> {
    vec![
        Need::Browser.trial("browser::shows_pages_without_a_complaint", complaints),
        Need::Browser.trial("browser::pages_fit_a_phone", phone),
        Need::Axe.trial("browser::pages_are_accessible", accessible),
    ]
}

/// What the browser makes of a page at an address, of which this is what follows the file: `#lane=3`.
pub fn browse(name: &str, html: &str, address: &str, arguments: &[&str]) -> Result<Output, Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join(name);
    fs::write(&path, html)?;
    open(&format!("file://{}{address}", path.display()), arguments)
}

/// What it makes of what is at an address.
pub fn open(url: &str, arguments: &[&str]) -> Result<Output, Failed> {
    let fixed = ["--no-sandbox", "--disable-gpu", "--enable-logging=stderr"];
    let output = Command::new(BROWSER).args(fixed).args(arguments).arg(url).output()?;
    if !output.status.success() {
        return Err(format!("{BROWSER}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(output)
}

/// No page makes the browser say anything in its console, and what it shows is the page.
fn complaints() -> Result<(), Failed> {
    for (name, html) in pages()? {
        let output = browse(name, html, "", &["--dump-dom"])?;
        let said = String::from_utf8_lossy(&output.stderr);
        if let Some(line) = said.lines().find(|line| line.contains("CONSOLE")) {
            return Err(format!("{name}: {line}").into());
        }
        let shown = String::from_utf8_lossy(&output.stdout);
        if !shown.contains("</main>") {
            return Err(format!("{name} is not shown").into());
        }
    }
    Ok(())
}

/// A copy of a page that may run other scripts than its own.
pub fn without_policy(html: &str) -> Result<String, Failed> {
    let (head, rest) = html.split_once("<meta http-equiv").ok_or("a page has a policy")?;
    let (_, rest) = rest.split_once('>').ok_or("a page has a policy")?;
    Ok(format!("{head}{rest}"))
}

/// On the width of a phone no page is wider than that: what is wide scrolls in a box of its own. The copy that is asked may run
/// a script, which the page itself may not.
fn phone() -> Result<(), Failed> {
    const ASKS: &str = "<script>document.body.dataset.wide = document.documentElement.scrollWidth;\
                        </script></body>";
    // Pages differ in length, and hardly in what they are made of.
    let some = pages()?.iter().step_by(EVERY);
    for (name, html) in some {
        let asking = without_policy(html)?.replace("</body>", ASKS);
        let output = browse(name, &asking, "", &["--dump-dom", "--window-size=390,800"])?;
        let shown = String::from_utf8_lossy(&output.stdout);
        let wide = shown.split_once("data-wide=\"").and_then(|(_, rest)| rest.split_once('"'));
        let wide: u32 = wide.ok_or("the script has not run")?.0.parse()?;
        if wide > 390 {
            return Err(format!("{name} is {wide} pixels wide on a phone of 390").into());
        }
    }
    Ok(())
}

/// A script that asks axe-core for what a reader with a keyboard, a screen reader or weak eyes stumbles over, as soon as a condition
/// of JavaScript holds.
pub fn asking_axe(when: &str) -> Result<String, Failed> {
    let asks = format!(
        "{{ const ask = () => !({when}) ? setTimeout(ask, 20) : \
         axe.run().then((found) => {{ document.body.dataset.axe = found.violations.map((v) => \
         v.id + ': ' + v.nodes.length + ', first ' + v.nodes[0].target).join('; ') + '.'; }}); ask(); }}"
    );
    let axe = fs::read_to_string(needs::axe().ok_or("axe-core is there")?)?;
    // The script's own text must not end the element that it stands in.
    let axe = axe.replace("</script", "<\\/script");
    Ok(format!("<script>{axe}</script><script>{asks}</script></body>"))
}

/// What axe-core has found, if it has been through.
pub fn found_by_axe(shown: &str) -> Option<&str> {
    let (found, _) = shown.split_once("data-axe=\"")?.1.split_once('"')?;
    Some(found)
}

/// axe-core finds nothing, in either scheme.
fn accessible() -> Result<(), Failed> {
    let asks = asking_axe("true")?;
    for (name, html) in pages()?.iter().step_by(EVERY) {
        let asking = without_policy(html)?.replace("</body>", &asks);
        for scheme in ["0", "1"] {
            let scheme = format!("--blink-settings=preferredColorScheme={scheme}");
            let arguments = ["--dump-dom", "--virtual-time-budget=60000", &scheme];
            let output = browse(name, &asking, "", &arguments)?;
            let shown = String::from_utf8_lossy(&output.stdout);
            match found_by_axe(&shown) {
                Some(".") => {}
                Some(found) => return Err(format!("{name}, {scheme}: {found}").into()),
                None => return Err(format!("{name}: axe-core has not run").into()),
            }
        }
    }
    Ok(())
}
