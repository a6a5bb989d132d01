//! Search for the word that a misspelt one stands for.

/// Returns the most similar word, if any is similar enough.
pub(crate) fn closest<'w>(written: &str, words: &[&'w str]) -> Option<&'w str> {
    let written = written.to_lowercase();
    let near = words
        .iter()
        .map(|word| (strsim::damerau_levenshtein(&written, word), *word))
        .filter(|(distance, word)| *distance <= 1.max(word.len() / 3) && *distance < word.len())
        .min()
        .map(|(_, word)| word);
    // `double` is short for `double_buffer`.
    near.or_else(|| words.iter().copied().find(|word| word.split('_').any(|part| part == written)))
}
