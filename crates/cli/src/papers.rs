//! Papers by name: lists in the libraries cite them by keys, people read authors and years.
//!
//! Used wherever an entry of a list is printed: `forerun list` and the long help texts. Example:
//! `wu10 section 4` is printed as `Wu 2010 section 4`.

/// A text with its papers named as prose names them.
#[must_use]
pub fn in_words(source: &str) -> String {
    let mut words = source.to_owned();
    for (key, name, _) in PAPERS {
        words = words.replace(key, name);
    }
    words
}

/// The keys of the lists, and the papers by name and title.
pub const PAPERS: &[(&str, &str, &str)] = &[
    (
        "baek09",
        "Baek and Park 2009",
        "Striping-Aware Sequential Prefetching for Independency and Parallelism in Disk Arrays with \
         Concurrent Accesses",
    ),
    (
        "griffioen94",
        "Griffioen and Appleton 1994",
        "Reducing File System Latency using a Predictive Approach",
    ),
    (
        "kimbrel96",
        "Kimbrel et al. 1996",
        "A Trace-Driven Comparison of Algorithms for Parallel Prefetching and Caching",
    ),
    (
        "li04",
        "Li et al. 2004",
        "Li, Shen, Papathanasiou: Competitive Prefetching for Data-Intensive Online Servers",
    ),
    (
        "li05",
        "Li and Shen 2005",
        "Managing Prefetch Memory for Data-Intensive Online Servers",
    ),
    ("wu10", "Wu 2010", "Sequential File Prefetching in Linux"),
];
