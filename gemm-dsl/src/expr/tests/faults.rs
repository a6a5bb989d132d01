//! One test for each fault of an expression: the message, and the token that it marks.

use crate::expr::{Closure, EPILOGUE, ExprScope, IntRange, Typing};

/// Returns the marked text and the message of each fault.
pub(super) fn faults(scope: &'static ExprScope, text: &str) -> Vec<(String, String)> {
    let Err(faults) = Closure::parse(scope, text) else { return Vec::new() };
    faults
        .iter()
        .map(|fault| {
            let excerpt = fault.excerpt().expect("a place");
            let chars = excerpt.text.chars().skip(excerpt.column - 1).take(excerpt.width);
            (chars.collect(), fault.message().to_owned())
        })
        .collect()
}

#[track_caller]
fn fault(text: &str, token: &str, part: &str) {
    let found = faults(&EPILOGUE, text);
    let fits = |(at, message): &(String, String)| at == token && message.contains(part);
    assert!(found.len() == 1 && found.iter().all(fits), "{text}\n{found:#?}");
}

/// A tuple stands at the end of the closure, and its values have the type of the result.
#[test]
fn faulty_tuples_are_reported() {
    fault("|acc| (relu(acc),)", "(relu(acc),)", "this tuple has one value; leave out the `,`");
    fault("|acc| (acc, acc, acc, acc, 1.0)", "1.0", "returns at most 4 values; leave out this");
    fault("|acc| 2.0 * (acc, 1.0)", ",", "the values of a tuple at the end of the closure");
    fault("|acc| if acc > 0.0 { (acc, 1.0) } else { acc }", ",", "at the end of the closure");
    fault("|acc| (acc, 1.0) * 2.0", ",", "at the end of the closure");
    fault("|acc| (acc, 1)", "1", "`epilogue` must return");
    fault("|acc| (acc, x)", "x", "`x` is not a known name");
    fault("|acc| { let t = acc; (acc, 1.0) }", "t", "`t` is never read");
    assert_eq!(faults(&EPILOGUE, "|acc, x| { let t = acc; (1.0, t + x) }"), []);
    assert_eq!(faults(&EPILOGUE, "|acc| (acc, max(acc, 0.0),)"), []);
}

#[test]
fn faulty_heads_are_reported() {
    fault(
        "max(acc, 0.0)",
        "max",
        "takes a closure whose first parameter is the accumulator, as in `epilogue: |acc|",
    );
    fault("|| 1.0", "||", "has no parameters; name the accumulator first");
    fault("|acc max(acc, 0.0)", "max", "expected `,` or `|`, found `max`");
    fault("|acc, ", "|", "`|` is not closed");
    fault("|1.0| acc", "1.0", "expected the name of a parameter, found `1.0`");
    fault("|acc[n]| acc", "acc[n]", "`acc` is the accumulator, not an array");
    fault(
        "|acc, bias[k]| acc + bias",
        "bias[k]",
        "an operand is one of `bias`, `bias[n]`, `bias[m]`, `bias[m, n]`",
    );
    fault("|acc, r[n, m]| acc + r", "r[n, m]", "an operand is one of `r`, `r[n]`");
    fault("|acc, c[n]| acc + c", "c[n]", "the output before the launch: write `c[m, n]`");
    fault("|acc, c| acc + c", "c", "write `c[m, n]`, or use another name");
    fault("|acc, acc| acc", "acc", "`acc` is defined already");
    fault("|acc, max| max(acc, 0.0)", "max", "`max` is a function; use another name");
    fault("|acc, bias[n]| acc", "bias[n]", "`bias` is never read; read it, or write `_bias`");
    fault("|acc, c[m, n]| acc", "c[m, n]", "`c` is never read; read it, or leave it out");
    assert_eq!(faults(&EPILOGUE, "|acc, b[n], s[m], r[m, n], x, c[m, n]| acc+b+s+r+x+c"), []);
    fault("|acc: f32| acc", ":", "leave `: …` out, as in `|acc| max(acc, 0.0)`");
    fault("|row| row + 1.0", "row", "`row` is reserved; use another name");
    fault("|len| len + 1.0", "len", "`len` is reserved");
    fault("|max| max", "max", "`max` is a function; use another name");
    fault("|r#fn| 1.0", "r#fn", "only ASCII letters");
    fault("|größe| größe", "größe", "only ASCII letters");
    fault("|acc| 1.0", "acc", "`acc` is never read; read it, or write `_acc`");
    assert_eq!(faults(&EPILOGUE, "|_acc| 1.0"), []);
}

#[test]
fn unknown_names_and_functions_are_reported() {
    fault("|acc| ac + 1.0", "ac", "did you mean `acc`?");
    fault("|acc| acc + f32(rwo)", "rwo", "did you mean `row`?");
    fault("|acc| acc + x", "x", "the known names are `acc`, `m`, `n`, `k`, `row`, `col`");
    fault("|acc| acc + f32(batch)", "batch", "not a known name");
    fault(
        "|acc| if acc > 0.0 { let t = acc; t } else { t }",
        "t",
        "its block has ended; define it outside the block",
    );
    fault("|acc| if true { acc } else { 0.0 }", "true", "write a comparison, such as `a > b`");
    fault("|acc| acc + gelu", "gelu", "it is a function: `gelu(x)`");
    fault("|acc| rlu(acc)", "rlu", "did you mean `relu(x)`?");
    fault("|acc| expf(acc)", "expf", "did you mean `exp(x)`?");
    fault("|acc| fmaxf(acc, 0.0)", "fmaxf", "did you mean `max(a, b)`? It gives NaN");
    fault("|acc| ln_1p(acc)", "ln_1p", "did you mean `log1p(x)`?");
    fault("|acc| powf(acc, 2.0)", "powf", "did you mean `pow(x, y)`?");
    fault("|acc| softpuls(acc)", "softpuls", "did you mean `softplus(x)`?");
    fault("|acc| acc * signum(acc)", "signum", "did you mean `sign(x)`? It gives ±0 for ±0");
    fault("|acc| if is_nan(acc) { 0.0 } else { acc }", "is_nan", "did you mean `isnan(x)`?");
    fault("|acc| roundf(acc)", "roundf", "did you mean `round(x)`? It rounds ties to even");
    fault(
        "|acc| frobnicate(acc)",
        "frobnicate",
        "is not a function; the known functions are `min`, `max`",
    );
    fault("|acc| max(acc)", "max(acc)", "the first value is stored in C");
    fault("|acc| exp(acc, 2.0)", "exp(acc, 2.0)", "`exp` takes 1 operand, not 2: `exp(x)`");
    fault("|acc| acc.max(0.0)", ".", "functions are not methods; write `max(a, b)`");
    fault("|acc| { let acc = 1.0; acc }", "acc", "`acc` is defined already");
    fault("|acc| { let t = 1.0; acc }", "t", "`t` is never read; leave the definition out");
    fault("|acc| { let exp = 1.0; acc * exp }", "exp", "`exp` is a function");
    fault("|acc| acc[0]", "[", "an index belongs to a parameter");
}

#[test]
fn wrong_types_are_reported() {
    fault("|acc| acc * 2", "2", "there is no implicit conversion; write `2.0`");
    fault("|acc| row * acc", "row", "write `f32(row)`");
    fault("|acc| acc + f32(acc)", "acc", "this is an f32 already");
    fault("|acc| max(acc, 0)", "0", "`max` takes an f32 here, and `0` is an integer; write `0.0`");
    fault("|acc| exp(acc > 0.0)", "acc > 0.0", "`exp` takes a number, but this is a boolean");
    fault("|acc| acc % 2.0", "%", "`%` is for integers");
    fault("|acc| -(acc > 0.0)", "-(acc > 0.0)", "write `!`");
    fault("|acc| if !acc { 1.0 } else { 2.0 }", "!acc", "`!` takes a boolean");
    fault("|acc| if acc { 1.0 } else { 2.0 }", "acc", "a condition must be a boolean");
    fault(
        "|acc| if acc > 0.0 { 1 } else { acc }",
        "1",
        "one arm of `if` is an integer, the other an f32; write `1.0`",
    );
    fault("|acc| if acc && row > 1 { 1.0 } else { acc }", "acc", "`&&` takes booleans");
    fault("|acc| acc || acc", "acc || acc", "as in `x > 0.0 || y > 0.0`");
    fault("|acc| if acc || acc { 1.0 } else { 2.0 }", "acc || acc", "these are numbers");
    fault("|acc| acc > 0.0 || acc", "acc", "`||` takes booleans, but this is an f32");
    fault("|acc| acc > 0.0 || acc < 1.0", "acc > 0.0 || acc < 1.0", "but this is a boolean");
    fault("|acc| (acc > 0.0) + 1.0", "+", "`+` takes numbers, not booleans");
    fault("|acc| if (acc > 0.0) == (acc < 1.0) { 1.0 } else { acc }", "==", "compares numbers");
    fault("|acc| acc > 0.0", "acc > 0.0", "`epilogue` must return an f32, but this is a boolean");
    fault("|_acc| 1", "1", "`epilogue` must return an f32, but this is an integer; write `1.0`");
    fault("|_acc| row", "row", "write `f32(row)`");
}

/// Suggested replacements have no fault.
#[test]
fn remedies_are_sound() {
    for (text, suggestion, mended) in [
        ("|acc| acc + f32(5 / k)", "write `max(k, 1)`", "|acc| acc + f32(5 / max(k, 1))"),
        ("|acc| acc + f32(5 / -k)", "write `min(-k, -1)`", "|acc| acc + f32(5 / min(-k, -1))"),
        (
            "|acc| acc + f32(5 % (n - n))",
            "may be 0; divide by a value that is never 0, such as `max(abs(x), 1)`",
            "|acc| acc + f32(5 % max(abs(n - n), 1))",
        ),
        ("|acc| acc + f32(5 / 0)", "may be 0; convert both sides", "|acc| acc + f32(5) / f32(0)"),
        ("|acc| if row { acc } else { 0.0 }", "`x > 0`", "|acc| if row > 0 { acc } else { 0.0 }"),
        (
            "|acc| if acc { acc } else { 0.0 }",
            "`x > 0.0`",
            "|acc| if acc > 0.0 { acc } else { 0.0 }",
        ),
        (
            "|acc| if acc == 1.0 && row { acc } else { 0.0 }",
            "`x > 0`",
            "|acc| if acc == 1.0 && row > 0 { acc } else { 0.0 }",
        ),
        (
            "|acc| if row || acc { acc } else { 0.0 }",
            "`x > 0 || y > 0.0`",
            "|acc| if row > 0 || acc > 0.0 { acc } else { 0.0 }",
        ),
        (
            "|acc| if !row { acc } else { 0.0 }",
            "`x == 0`",
            "|acc| if row == 0 { acc } else { 0.0 }",
        ),
        (
            "|acc| if !acc { acc } else { 0.0 }",
            "`x == 0.0`",
            "|acc| if acc == 0.0 { acc } else { 0.0 }",
        ),
        ("|acc| acc * (1 / 2)", "write `1.0 / 2.0`", "|acc| acc * (1.0 / 2.0)"),
        ("|acc| acc * (1 - 3 * -2)", "write `1.0 - 3.0 * -2.0`", "|acc| acc * (1.0 - 3.0 * -2.0)"),
        ("|acc| acc * -2", "write `-2.0`", "|acc| acc * -2.0"),
        ("|acc| acc * (row / 2)", "write `f32(row / 2)`", "|acc| acc * f32(row / 2)"),
        ("|acc| acc * (7 % 2)", "write `f32(7 % 2)`", "|acc| acc * f32(7 % 2)"),
        ("|acc| acc * 16777217", "write `f32(16777217)`", "|acc| acc * f32(16777217)"),
        ("|acc| max(acc, 1 / 4)", "write `1.0 / 4.0`", "|acc| max(acc, 1.0 / 4.0)"),
        ("|_acc| 1 / 4", "write `1.0 / 4.0`", "|_acc| 1.0 / 4.0"),
        ("|_acc| row * 2", "write `f32(row * 2)`", "|_acc| f32(row * 2)"),
        ("|acc| f32::max(acc, 0.0)", "write `max(a, b)`", "|acc| max(acc, 0.0)"),
        ("|mut acc| acc", "leave `mut` out", "|acc| acc"),
        ("|(acc)| acc", "leave the parentheses out", "|acc| acc"),
        ("|acc: f32| acc", "leave `: …` out", "|acc| acc"),
    ] {
        let found = faults(&EPILOGUE, text);
        assert!(found.len() == 1 && found[0].1.contains(suggestion), "{text}\n{found:#?}");
        assert_eq!(faults(&EPILOGUE, mended), [], "{text}");
    }
}

#[test]
fn syntax_faults_are_reported() {
    fault("|acc|", "|", "expected a number, a name or `(`, found the end of the expression");
    fault("|acc| acc +", "+", "expected an operand after `+`, found the end of the expression");
    fault("|acc| max(acc, -)", ")", "expected an operand after `-`, found `)`");
    fault("|acc| acc acc", "acc", "expected an operator or the end of the expression");
    fault("|acc| 0.0 < acc < 1.0", "<", "comparisons do not chain");
    fault(
        "|acc| acc as i32",
        "as",
        "the type `i32` are not supported; the only conversion is `f32(…)`, of an integer",
    );
    fault("|acc| acc as f64", "as", "`as` and the type `f64` are not supported");
    fault("|acc| acc + row as f32", "as", "convert an integer by `f32(…)`");
    for op in ["+", "-", "*", "/", "%"] {
        let suggestion = format!("values here are immutable; write `{op}` for the result");
        fault(&format!("|acc| acc {op}= 1.0"), &format!("{op}="), &suggestion);
    }
    assert_eq!(faults(&EPILOGUE, "|acc| if acc<=0.0 { acc } else { acc *-1.0 }"), []);
    fault("|acc| acc = 1.0", "=", "to compare, write `==`");
    fault("|acc| acc ^ 2.0", "^", "`^` is not an operator");
    fault("|acc| acc & acc", "&", "write `&&`");
    fault("|acc| f32::max(acc, 0.0)", "::", "paths are not supported; write `max(a, b)`");
    fault("|acc| f32::MAX", "::", "write a number, or a name without `::`");
    fault("|acc| f32::NEG_INFINITY", "::", "write minus infinity as `-1.0 / 0.0`");
    fault("|acc| f32::INFINITY", "::", "write infinity as `1.0 / 0.0`");
    fault("|acc| f32::NAN", "::", "write NaN as `0.0 / 0.0`");
    fault("|acc| max(acc, -inf)", "inf", "`inf` is not a known name; write `1.0 / 0.0`");
    fault("|acc| max(acc, NEG_INFINITY)", "NEG_INFINITY", "write `-1.0 / 0.0`");
    fault("|acc| acc + NaN", "NaN", "write `0.0 / 0.0`");
    assert_eq!(faults(&EPILOGUE, "|acc| if acc > 0.0 { -1.0 / 0.0 } else { 0.0 / 0.0 }"), []);
    fault("|acc| acc + c", "c", "add the parameter `c[m, n]`");
    fault(
        "|acc| acc * factor",
        "factor",
        "`row`, `col`; to pass a value, make it a parameter: `|acc, factor|`, or `|acc, \
         factor[n]|` for a vector",
    );
    // No operand can have the name of a matrix or of an integer.
    for name in ["a", "b", "len"] {
        let [(_, message)] = &faults(&EPILOGUE, &format!("|acc| acc + {name}"))[..] else {
            panic!("`{name}` is known")
        };
        assert!(message.ends_with("`row`, `col`"), "{message}");
    }
    fault("|mut acc| acc", "mut", "a parameter does not change; leave `mut` out");
    assert_eq!(faults(&EPILOGUE, "|mut| mut"), []);
    fault(
        "|(acc)| acc",
        "(",
        "a parameter is a name alone; leave the parentheses out, as in `|acc|",
    );
    fault("|_acc, (n)| 1.0", "(", "a parameter is a name alone");
    fault("|acc| acc > 0.0 ? acc : 0.0", "?", "write `if condition { a } else { b }`");
    fault("|acc| if acc > 0.0 { acc }", "if", "`if` needs `else { … }`");
    fault("|acc| { let t = acc * 2.0 t }", "t", "expected `;`, found `t`");
    fault("|acc| { let t = acc; }", "}", "the block has no value");
    fault("|acc| { let t = acc; t; }", ";", "leave the `;` out");
    fault("|acc| { let mut t = acc; t }", "mut", "leave `mut` out");
    fault("|acc| { let t: f32 = acc; t }", ":", "leave `: …` out");
    fault("|acc| { acc } + 1.0", "+", "not an operator");
    fault("|acc| 1.0 + { acc }", "{", "here write `( … )`");
    fault("|acc| let", "let", "expected a number, a name or `(`, found `let`");
    fault("|acc| acc; 1.0", ";", "only ends a definition inside braces");
}

#[test]
fn faulty_numbers_are_reported() {
    fault("|acc| acc * 2.0f32", "2.0f32", "a number has no suffix; write `2.0`");
    fault("|acc| acc * 2f64", "2f64", "write `2.0`");
    fault("|acc| acc * f32(0x10)", "0x10", "is not a decimal number");
    fault("|acc| acc * f32(3u8)", "3u8", "is not a decimal number");
    fault(
        "|acc| acc * 1e39",
        "1e39",
        "is too large; an f32 is at most 3.4028235e38; write infinity as `1.0 / 0.0`",
    );
    fault("|acc| acc * -1e999", "1e999", "write infinity as `1.0 / 0.0`");
    fault("|acc| acc * 1e-60", "1e-60", "is too small for an f32");
    fault("|acc| acc + f32(9223372036854775808)", "9223372036854775808", "an integer is at most");
    fault("|acc| acc * \"2\"", "\"2\"", "expected a number, found \"2\"");
    assert_eq!(faults(&EPILOGUE, "|acc| acc * 1_0.0_1e0 + f32(1_000)"), []);
}

#[test]
fn all_at_once_and_none_twice() {
    let found = faults(&EPILOGUE, "|acc| { let t = ac * 2; max(t, 0) + min(t, 1) + rwo }");
    let tokens: Vec<&str> = found.iter().map(|(token, _)| token.as_str()).collect();
    assert_eq!(tokens, ["ac", "rwo"]);
    let found = faults(&EPILOGUE, "|acc| max(acc, 0) + min(acc, 1) + rwo + exp(2)");
    let tokens: Vec<&str> = found.iter().map(|(token, _)| token.as_str()).collect();
    assert_eq!(tokens, ["0", "1", "rwo", "2"]);
}

/// Compares only a part of the message, since excerpts of long lines are cut.
#[track_caller]
fn told(text: &str, part: &str) {
    let found = faults(&EPILOGUE, text);
    assert!(found.len() == 1 && found[0].1.contains(part), "{found:?}");
}

#[test]
fn oversized_expressions_are_reported() {
    let deep = |n| format!("|acc| {}acc{}", "-(".repeat(n), ")".repeat(n));
    assert_eq!(faults(&EPILOGUE, &deep(20)), []);
    told(&deep(40), "more than 64 levels deep");
    assert!(!faults(&EPILOGUE, &deep(2000)).is_empty());
    let chain = |n| format!("|acc| acc{}", " + acc".repeat(n));
    assert_eq!(faults(&EPILOGUE, &chain(60)), []);
    told(&chain(90), "more than 64 levels deep; use `let` for its parts");
    told(&chain(2000), "more than 1024 parts; make it shorter");
    // In a chain, the part that is too deep is at the start. In a long expression, the excess is at
    // the end.
    let place = |text: &str| {
        let Err(faults) = Closure::parse(&EPILOGUE, text) else { panic!("{text}") };
        faults.iter().map(|fault| fault.tokens().map(|at| (at.first, at.last))).collect::<Vec<_>>()
    };
    let numbers = |n| format!("|acc| acc{}", " + 1.0".repeat(n));
    let first = "|acc|".len() - 2;
    assert_eq!(faults(&EPILOGUE, &numbers(63)), []);
    assert_eq!(place(&numbers(64)), [Some((first, first))]);
    assert_eq!(place(&numbers(2000)), [Some((first + 1024, first + 1024))]);
    // A flat expression may be long.
    let flat = |n: usize| {
        let lets: String = (1..n).map(|i| format!("let t{i} = -t{}; ", i - 1)).collect();
        format!("|acc| {{ let t0 = acc; {lets}t{} }}", n - 1)
    };
    assert_eq!(faults(&EPILOGUE, &flat(500)), []);
    told(&flat(600), "more than 1024 parts");
}

#[test]
fn long_names_are_reported() {
    let letters = |n| "x".repeat(n);
    let named = |name: &str| format!("|{name}| {name} * 2.0");
    let defined = |name: &str| format!("|acc| {{ let {name} = acc; {name} * 2.0 }}");
    for text in [named(&letters(128)), defined(&letters(128))] {
        assert_eq!(faults(&EPILOGUE, &text), []);
    }
    for text in [named(&letters(129)), defined(&letters(129))] {
        told(&text, "has 129 characters; use at most 128");
    }
    let long = letters(30_000);
    for text in
        [named(&long), defined(&long), format!("|acc| acc * {long}"), format!("|acc[{long}]| acc")]
    {
        let Err(faults) = Closure::parse(&EPILOGUE, &text) else { panic!("a long name") };
        assert!(faults.to_string().len() < 600, "{faults}");
    }
}

#[test]
fn integer_overflows_are_reported() {
    fault("|acc| acc + f32(row * col * n)", "*", "the integer may overflow 64 bits");
    fault("|acc| acc + f32(9223372036854775807 + row)", "+", "may overflow 64 bits");
    fault("|acc| acc + f32(row / n)", "n", "the right side of `/` may be 0; write `max(n, 1)`");
    fault("|acc| acc + f32(row % (col - 1))", "(col - 1)", "may be 0");
    let sound =
        "|acc| acc + f32(row * col + k) + f32(row / max(n, 1) % -7) + f32(abs(row - col) / 2)";
    assert_eq!(faults(&EPILOGUE, sound), []);
}

/// A condition of a table: a boolean without parameters.
#[test]
fn an_environment_without_values_has_no_head() {
    static CONDITION: ExprScope = ExprScope {
        key: "table",
        example: "m <= 8 || n <= 8",
        values: (0, 0),
        meaning: "nothing",
        reserved: &[],
        lent: None,
        operands: &[],
        output: None,
        results: 1,
        is_typed: false,
        numbers: false,
        folds: false,
        pairs: false,
        integers: &[("m", IntRange::INDEX), ("n", IntRange::INDEX), ("k", IntRange::INDEX)],
        conditions: None,
        typing: Some(Typing::F32_CONDITION),
    };
    assert_eq!(faults(&CONDITION, "m <= 8 || n % 4 == 0 && max(m, n) > 2 * k"), []);
    let found = faults(&CONDITION, "m + n");
    assert!(
        found[0].1.contains("`table` must be a boolean, but this is an integer; compare it"),
        "{found:?}"
    );
    let closure = Closure::parse(&CONDITION, "(m<=8)||n%4==0").map(|c| c.to_string());
    assert_eq!(closure.as_deref(), Ok("m <= 8 || n % 4 == 0"));
}

/// A fold of two values, with operands of every form.
#[test]
fn an_environment_says_how_many_values_and_which_operands() {
    static FOLD: ExprScope = ExprScope {
        key: "fold",
        example: "|a, b| a + b",
        values: (2, 2),
        meaning: "a value",
        reserved: &[],
        lent: None,
        operands: &[&[], &["n"], &["m", "n"]],
        output: None,
        results: 1,
        is_typed: false,
        numbers: false,
        folds: false,
        pairs: false,
        integers: &[],
        conditions: None,
        typing: Some(Typing::F32),
    };
    assert_eq!(faults(&FOLD, "|a, b, s, c[n], d[m, n]| a + b + s + c + d"), []);
    let found = faults(&FOLD, "|a| a");
    assert!(found[0].1.contains("the closure has"), "{found:?}");
    let found = faults(&FOLD, "|a, b, c[k]| a + b + c");
    assert_eq!(found[0].0, "c[k]");
    assert!(found[0].1.contains("an operand is one of `c`, `c[n]`, `c[m, n]`"), "{found:?}");
    let found = faults(&FOLD, "|a, a| a + a");
    assert!(found[0].1.contains("`a` is defined already"), "{found:?}");
}
