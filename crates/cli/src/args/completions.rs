//! `tidetable completions`, `complete` and `man`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::args::parse::Here;

/// `tidetable completions`
#[derive(Debug, Args)]
#[command(after_help = "\
To have them in every shell:
  bash  echo 'source <(tidetable completions bash)' >> ~/.bashrc
  zsh   echo 'source <(tidetable completions zsh)' >> ~/.zshrc
  fish  tidetable completions fish > ~/.config/fish/completions/tidetable.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// A supported shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// Bash.
    Bash,
    /// Zsh.
    Zsh,
    /// Fish.
    Fish,
}

/// `tidetable complete`: the words of a line after the command's name, the last of them unfinished.
#[derive(Debug, Args)]
pub struct Complete {
    /// The words
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// `tidetable man`
#[derive(Debug, Args)]
pub struct Man {
    /// Write all pages into this folder, as tidetable.1, tidetable-run.1 and so on
    #[arg(value_parser = Here("a folder of pages"))]
    pub dir: Option<PathBuf>,
}
