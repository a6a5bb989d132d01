//! Pages in a real browser, without a window.

use crate::{fault, pages, pages_and_faults};
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
        Need::Browser.trial("browser::nothing_is_cut_off_on_paper", print),
        Need::Browser.trial("browser::the_front_page_fits_a_screen", screen),
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
    for (name, html) in pages_and_faults()? {
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

/// Some of the pages, which differ in length and hardly in what they are made of, and those of faults.
fn some() -> Result<impl Iterator<Item = (&'static String, &'static String)>, Failed> {
    let faults = fault::pages()?.iter().map(|(name, html)| (name, html));
    Ok(pages()?.iter().step_by(EVERY).chain(faults))
}

/// On the width of a phone no page is wider than that: what is wide scrolls in a box of its own. The copy that is asked may run
/// a script, which the page itself may not.
fn phone() -> Result<(), Failed> {
    const ASKS: &str = "<script>document.body.dataset.wide = document.documentElement.scrollWidth;\
                        </script></body>";
    for (name, html) in some()? {
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

/// On paper nothing is cut off: every box is as wide as what is in it, and none reaches beyond the sheet. The copy that is asked is
/// laid out on a screen as wide as a sheet of A4 within its margins, as if that were printed.
fn print() -> Result<(), Failed> {
    const SHEET: u32 = 718;
    const ASKS: &str = "<script>const cut = [...document.querySelectorAll('.wide, .wide > *')].filter((e) => \
                        e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && !e.closest('svg') || \
                        e.getBoundingClientRect().right > document.documentElement.clientWidth + 1);\
                        document.body.dataset.cut = cut.map((e) => (e.getAttribute('aria-labelledby') || \
                        e.getAttribute('aria-label') || e.parentNode.getAttribute('aria-labelledby') || e.className) + ' ' + \
                        e.scrollWidth).join(', ') + '.';</script></body>";
    for (name, html) in pages_and_faults()? {
        let asking = without_policy(html)?.replace("</body>", ASKS);
        let asking = asking.replace("@media print{", "@media all{");
        let window = format!("--window-size={SHEET},1000");
        let output = browse(name, &asking, "", &["--dump-dom", &window])?;
        let shown = String::from_utf8_lossy(&output.stdout);
        let cut = shown.split_once("data-cut=\"").and_then(|(_, rest)| rest.split_once('"'));
        let (cut, _) = cut.ok_or("the script has not run")?;
        if cut != "." {
            return Err(format!("{name}: cut off are {cut}").into());
        }
    }
    Ok(())
}

/// On a usual screen the tables of the front page need no scrolling.
fn screen() -> Result<(), Failed> {
    const ASKS: &str = "<script>document.body.dataset.wide = [...document.querySelectorAll('.wide:has(> .ladder)')].map((e) => \
                        e.scrollWidth - e.clientWidth).join(' ');</script></body>";
    let asking = without_policy(crate::page("index.html")?)?.replace("</body>", ASKS);
    let output = browse("index.html", &asking, "", &["--dump-dom", "--window-size=1280,800"])?;
    let shown = String::from_utf8_lossy(&output.stdout);
    let wide = shown.split_once("data-wide=\"").and_then(|(_, rest)| rest.split_once('"'));
    match wide.ok_or("the script has not run")?.0 {
        "0 0" => Ok(()),
        beyond => Err(format!("the tables go beyond the screen by {beyond} pixels").into()),
    }
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
    for (name, html) in some()? {
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
