//! Links from the words of a page to the glossary. Each term is linked once in each part of the
//! page. In kernel sources only CUDA words are linked.

use super::glossary::{TERMS, Term};
use std::collections::{BTreeMap, BTreeSet};

/// Elements whose content is not prose: kernel source, pictures, links and headings.
const UNREAD: [&str; 16] = [
    "a", "code", "svg", "style", "script", "title", "h1", "h2", "h3", "summary", "thead", "label",
    "button", "output", "nav", "footer",
];

/// Start of a link to a term.
const HREF: &str = "href=\"#w-";

/// Heading that starts a part of a page. No other headings have this level.
const PART: &str = "h2";

/// Start of the glossary, where no links are added.
const WORDS: &str = "<section id=\"words\">";

struct Form {
    text: String,
    id: &'static str,
}

/// Spellings by their first letter in lower case, longer ones first.
type Forms = BTreeMap<u8, Vec<Form>>;

/// Spellings of all terms in prose.
fn forms() -> Forms {
    let of = |term: &Term| {
        let id = term.id;
        let name = term.name.to_lowercase();
        let plural = format!("{name}s");
        let others = term.others.iter().map(|other| (*other).to_owned());
        let own = [name, plural].into_iter().chain(others).map(move |text| Form { text, id });
        own.collect::<Vec<_>>()
    };
    let forms_of_code = forms_of_code().into_values().flatten();
    in_order(TERMS.iter().flat_map(of).chain(forms_of_code).collect())
}

/// Spellings of CUDA words. Other terms are not linked in kernel sources, because names and
/// comments use these words in their general sense.
fn forms_of_code() -> Forms {
    let of = |term: &'static Term| {
        let id = term.id;
        term.code.iter().map(move |word| Form { text: (*word).to_owned(), id })
    };
    in_order(TERMS.iter().flat_map(of).collect())
}

fn in_order(mut all: Vec<Form>) -> Forms {
    all.sort_by(|a, b| b.text.len().cmp(&a.text.len()).then(a.text.cmp(&b.text)));
    let mut forms = Forms::new();
    for form in all {
        let first = form.text.as_bytes()[0].to_ascii_lowercase();
        forms.entry(first).or_default().push(form);
    }
    forms
}

/// Adds a link to the first occurrence of each term in each part, unless the part already links the
/// term. Returns the page, and all terms that are linked.
pub(super) fn linked(html: &str) -> (String, Vec<Term>) {
    let end = html.find(WORDS).unwrap_or(html.len());
    let (said, rest) = html.split_at(end);
    let of_link = |after: &str| after.split_once('"').map(|(id, _)| id.to_owned());
    // Terms that a part links, up to the heading of the next part.
    let linked = |part: &str| -> BTreeSet<String> {
        let end = part.find("<h2").unwrap_or(part.len());
        part[..end].split(HREF).skip(1).filter_map(of_link).collect()
    };
    let mut known = linked(said);
    // Terms that earlier parts link, and an empty set.
    let (mut all, nothing) = (BTreeSet::new(), BTreeSet::new());
    let (forms, forms_of_code) = (forms(), forms_of_code());
    let mut out = String::with_capacity(html.len() + html.len() / 32);
    let mut unread = 0_usize;
    // True inside a cell with a line of kernel source.
    let mut in_line = false;
    let mut left = said;
    while let Some((text, tag)) = left.split_once('<') {
        match (unread, in_line) {
            (0, false) => link(text, &forms, &nothing, &mut known, &mut out),
            // Kernel sources repeat the same words, so a CUDA word is linked only once on a page.
            (0, true) => link(text, &forms_of_code, &all, &mut known, &mut out),
            _ => out += text,
        }
        let Some((inside, behind)) = tag.split_once('>') else {
            out.push('<');
            left = tag;
            continue;
        };
        let name = inside.trim_start_matches('/').split([' ', '\n']).next().unwrap_or_default();
        let is_end = inside.starts_with('/');
        if name == PART && is_end {
            all.append(&mut known);
            known = linked(behind);
        }
        if UNREAD.contains(&name) {
            unread = if is_end { unread.saturating_sub(1) } else { unread + 1 };
        }
        if name == "td" {
            in_line = !is_end && inside.contains("class=\"t\"");
        }
        out.extend(["<", inside, ">"]);
        left = behind;
    }
    out.extend([left, rest]);
    all.append(&mut known);
    (out, TERMS.into_iter().filter(|term| all.contains(term.id)).collect())
}

/// Appends a text. Adds a link at the first occurrence of each term that is in neither `known` nor
/// `before_it`.
fn link(
    text: &str,
    forms: &Forms,
    before_it: &BTreeSet<String>,
    known: &mut BTreeSet<String>,
    out: &mut String,
) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let mut at = 0;
    let mut before = ' ';
    while let Some(c) = text[at..].chars().next() {
        let begins = is_word(c) && !is_word(before) && before != '&';
        let first = text.as_bytes()[at].to_ascii_lowercase();
        let alike = forms.get(&first).filter(|_| begins);
        let found = alike.into_iter().flatten().find(|form| {
            let here = text[at..].get(..form.text.len());
            let behind = || text[at + form.text.len()..].chars().next();
            here.is_some_and(|here| here.eq_ignore_ascii_case(&form.text))
                && !behind().is_some_and(is_word)
        });
        let length = found.map_or(c.len_utf8(), |form| form.text.len());
        let here = &text[at..at + length];
        match found {
            Some(form) if !before_it.contains(form.id) && known.insert(form.id.to_owned()) => {
                *out += &format!("<a class=\"word\" {HREF}{}\">{here}</a>", form.id);
            }
            _ => *out += here,
        }
        before = here.chars().last().unwrap_or(' ');
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linked_terms(html: &str) -> (String, Vec<&'static str>) {
        let (html, terms) = linked(html);
        (html, terms.into_iter().map(|term| term.id).collect())
    }

    #[test]
    fn the_first_place_of_a_term_is_a_link() {
        let (html, terms) = linked_terms("<p>A bank, two Banks; bank conflicts.</p>");
        let expected = "<p>A <a class=\"word\" href=\"#w-bank\">bank</a>, two Banks; \
                        <a class=\"word\" href=\"#w-conflict\">bank conflicts</a>.</p>";
        assert_eq!((&*html, &terms[..]), (expected, &["bank", "conflict"][..]));
        assert_eq!(linked_terms(&html), (html.clone(), terms), "a second time nothing changes");
    }

    /// Each part has its own links, for readers who start there.
    #[test]
    fn each_part_has_links_of_its_own() {
        let (html, terms) =
            linked_terms("<h2>A</h2><p>lanes, lanes</p><h2>B</h2><p>lanes <h3>C</h3> lane</p>");
        let link = "<a class=\"word\" href=\"#w-lane\">lanes</a>";
        let expected =
            format!("<h2>A</h2><p>{link}, lanes</p><h2>B</h2><p>{link} <h3>C</h3> lane</p>");
        assert_eq!((html, &terms[..]), (expected.clone(), &["lane"][..]));
        assert_eq!(linked_terms(&expected).0, expected, "a second time nothing changes");
    }

    /// In a kernel source, only whole CUDA words are linked.
    #[test]
    fn words_of_cuda_are_links_in_texts() {
        let line = |text: &str| format!("<td class=\"t\">{text}</td>");
        let link = |id: &str, text: &str| format!("<a class=\"word\" href=\"#w-{id}\">{text}</a>");
        let (html, terms) = linked_terms(&line(
            "<span>__global__</span> my__global__ fence_2 #pragma unroll 1 // tile",
        ));
        let [global, unroll] =
            [link("global-function", "__global__"), link("unrolled", "pragma unroll")];
        assert_eq!(
            html,
            line(&format!("<span>{global}</span> my__global__ fence_2 #{unroll} 1 // tile"))
        );
        assert_eq!(terms, ["global-function", "unrolled"]);
        let twice = linked_terms(&format!("<h2>A</h2>{0}<h2>B</h2>{0}", line("__global__"))).0;
        assert_eq!(twice.matches(&global).count(), 1, "later parts have no link: {twice}");
        let longest = linked_terms(&line("&#34;cp.async.bulk.tensor.2d cp.async.cg&#34;")).1;
        assert_eq!(longest, ["async-copy", "tma"]);
        assert_eq!(linked_terms(&line(&global)).0, line(&global), "a second time nothing changes");
    }

    #[test]
    fn terms_outside_sentences_are_not_linked() {
        for html in [
            "<h2>Lanes</h2>",
            "<td class=\"t\">int <span>lane</span></td>",
            "<code>lane</code>",
            "<a href=\"#x\">lane</a>",
            "<p>planes, lane_a, sub-lane, &lane;</p>",
        ] {
            assert_eq!(linked_terms(html), (html.to_owned(), vec![]), "{html}");
        }
        let (html, terms) = linked_terms("<p>a tile</p><section id=\"words\"><p>a warp</p>");
        assert!(html.ends_with("<p>a warp</p>") && terms == ["tile"], "{html}");
    }
}
