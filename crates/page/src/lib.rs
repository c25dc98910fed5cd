//! Reports as self-contained HTML pages: no network, readable without script, in both themes.
