//! Search for the word that a misspelt word was meant to be.

/// Returns the most similar of `words`, if one is similar enough.
pub(crate) fn closest<'w>(written: &str, words: &[&'w str]) -> Option<&'w str> {
    let written = written.to_lowercase();
    let near = words
        .iter()
        .map(|word| (strsim::damerau_levenshtein(&written, word), *word))
        .filter(|(distance, word)| *distance <= 1.max(word.len() / 3) && *distance < word.len())
        .min()
        .map(|(_, word)| word);
    // A word with an ending, such as `batched` for `batch`, is nearer than another word, unless
    // only one letter of that word differs.
    let is_typo = near.is_some_and(|word| strsim::damerau_levenshtein(&written, word) <= 1);
    let stem = words.iter().copied().filter(|word| {
        word.len() > 2 && written.starts_with(word) && 3 * word.len() >= 2 * written.len()
    });
    let stem = stem.max_by_key(|word| word.len()).filter(|_| !is_typo);
    // A part of a key's name, such as `double` of `double_buffer`, is accepted as well.
    stem.or(near)
        .or_else(|| words.iter().copied().find(|word| word.split('_').any(|part| part == written)))
}
