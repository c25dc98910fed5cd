//! Command lines of the generators.

use std::collections::BTreeMap;

use crate::arrival::Arrival;

/// Arguments `FOLDER ENTITIES STEPS [--seed N] [--ordered]`, and further options with a number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Args {
    /// Arguments other than options.
    pub words: Vec<String>,
    /// `--seed`, by default 1.
    pub seed: u64,
    /// [`Arrival::Ordered`] with `--ordered`.
    pub arrival: Arrival,
    /// Values of other options.
    pub numbers: BTreeMap<String, u32>,
}

impl Args {
    /// Parses `args`, with `options` beside `--seed` and `--ordered`; `None` if they do not fit.
    pub fn parse(args: impl Iterator<Item = String>, options: &[&str]) -> Option<Self> {
        let (mut args, mut parsed) = (args, Self { seed: 1, ..Self::default() });
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--ordered" => parsed.arrival = Arrival::Ordered,
                "--seed" => parsed.seed = args.next()?.parse().ok()?,
                option if options.contains(&option) => {
                    let value = args.next()?.parse().ok()?;
                    parsed.numbers.insert(arg, value);
                }
                option if option.starts_with('-') => return None,
                _ => parsed.words.push(arg),
            }
        }
        Some(parsed)
    }

    /// Argument number `at` as a number.
    pub fn number(&self, at: usize) -> Option<u32> {
        self.words.get(at)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_may_stand_anywhere() {
        let parse = |text: &str| Args::parse(text.split(' ').map(str::to_owned), &["--per-day"]);
        let args = parse("out --seed 7 20 --ordered --per-day 24 3").unwrap();
        assert_eq!((args.seed, args.arrival, args.numbers["--per-day"]), (7, Arrival::Ordered, 24));
        assert_eq!((args.words[0].as_str(), args.number(1), args.number(2)), ("out", Some(20), Some(3)));
        assert_eq!(parse("out").map(|args| (args.seed, args.arrival)), Some((1, Arrival::Irregular)));
        assert_eq!((parse("out --seed"), parse("out --other"), parse("--per-day x")), (None, None, None));
    }
}
