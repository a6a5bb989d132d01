//! Entry of a text: the name of its kernel and the types of its parameters.

/// Qualifiers of a parameter that do not affect the caller.
const QUALIFIERS: [&str; 3] = ["const", "__restrict__", "__grid_constant__"];

/// Name and parameter types of a kernel, which a launch depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// Types of the parameters, without qualifiers and blanks, for example `float**`.
    pub parameters: Vec<String>,
}

impl Entry {
    /// Finds the kernel of a text. Returns `None` if there is no kernel.
    pub fn new(text: &str) -> Option<Self> {
        let (_, kernel) = text.split_once("__global__")?;
        let (head, _) = kernel.split_once('{')?;
        let (before, parameters) = head.trim_end().strip_suffix(')')?.rsplit_once('(')?;
        let name = before.rsplit(|c: char| !is_word(c)).next().filter(|name| !name.is_empty())?;
        let parameters = parameters.split(',').map(parameter).collect();
        Some(Self { name: name.to_owned(), parameters })
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Type of a parameter: its text without the name, which is last, and without qualifiers.
fn parameter(text: &str) -> String {
    let typed = text.trim().trim_end_matches(is_word);
    let words = typed.split_inclusive(|c| !is_word(c)).flat_map(|part| {
        let word = part.trim_end_matches(|c| !is_word(c));
        [word, &part[word.len()..]]
    });
    words.filter(|word| !QUALIFIERS.contains(word)).flat_map(str::split_whitespace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_dsl::cuda;
    use gemm_dsl::stages::pinned;

    #[test]
    fn an_entry_has_the_types_that_are_passed() {
        let text = "int f(int x) { return x; }\n\
                    extern \"C\" __global__ void __cluster_dims__(2, 1, 1) \
                    __launch_bounds__(N, 1)\n\
                    sgemm_lists(\n    const float* const* __restrict__ A, float* C,\n    \
                    const __grid_constant__ TensorMap map, const unsigned int M, size_t n)\n{\n";
        let entry = Entry::new(text).expect("a kernel");
        assert_eq!(entry.name, "sgemm_lists");
        assert_eq!(entry.parameters, ["float**", "float*", "TensorMap", "unsignedint", "size_t"]);
        assert_eq!(Entry::new("int f() {}"), None);
    }

    #[test]
    fn every_pinned_text_has_its_entry() {
        for spec in pinned::all().expect("sound") {
            for kernel in &spec.kernels {
                let entry = Entry::new(&cuda::source(kernel)).expect(&kernel.name);
                assert_eq!(entry.name, kernel.name);
                assert!(entry.parameters.iter().all(|ty| !ty.is_empty()), "{entry:?}");
            }
        }
    }
}
