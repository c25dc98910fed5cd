//! Names of months in several languages, and the SQL that numbers them.

use arrow::array::{Array, StringArray};

use crate::scaffold::identifier::identifier;

/// The names of the months of a language.
#[derive(Debug)]
pub(crate) struct MonthNames {
    /// The whole names, in small letters.
    names: &'static str,
    /// The first three letters of each, by which a name is known.
    starts: &'static str,
}

/// Languages in which three letters tell the months apart.
const LANGUAGES: [MonthNames; 9] = [
    MonthNames {
        names: "january february march april may june july august september october november december",
        starts: "janfebmaraprmayjunjulaugsepoctnovdec",
    },
    MonthNames {
        names: "januar februar märz april mai juni juli august september oktober november dezember",
        starts: "janfebmäraprmaijunjulaugsepoktnovdez",
    },
    MonthNames {
        names: "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        starts: "enefebmarabrmayjunjulagosepoctnovdic",
    },
    MonthNames {
        names: "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        starts: "genfebmaraprmaggiulugagosetottnovdic",
    },
    MonthNames {
        names: "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
        starts: "janfevmarabrmaijunjulagosetoutnovdez",
    },
    MonthNames {
        names: "januari februari maart april mei juni juli augustus september oktober november december",
        starts: "janfebmaaaprmeijunjulaugsepoktnovdec",
    },
    MonthNames {
        names: "januari februari mars april maj juni juli augusti september oktober november december",
        starts: "janfebmaraprmajjunjulaugsepoktnovdec",
    },
    MonthNames {
        names: "januar februar marts april maj juni juli august september oktober november december",
        starts: "janfebmaraprmajjunjulaugsepoktnovdec",
    },
    MonthNames {
        names: "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień",
        starts: "stylutmarkwimajczelipsiewrzpaźlisgru",
    },
];

/// The numbers of the months of a column.
#[derive(Debug)]
pub(crate) struct Months {
    pub numbers: Vec<Option<i64>>,
    pub language: &'static MonthNames,
}

impl Months {
    /// The numbers of a column all of whose values are names of months in one language, or the start of names.
    pub fn of(text: &StringArray) -> Option<Self> {
        LANGUAGES.iter().find_map(|language| {
            let mut numbers = Vec::with_capacity(text.len());
            for value in text {
                numbers.push(match value {
                    Some(value) => Some(language.number(value)?),
                    None => None,
                });
            }
            numbers.iter().any(Option::is_some).then_some(Self { numbers, language })
        })
    }
}

impl MonthNames {
    /// The number of a month by its name, or by three or more letters of it.
    fn number(&self, written: &str) -> Option<i64> {
        let small = written.to_lowercase();
        let place = self.names.split(' ').position(|name| small.chars().count() >= 3 && name.starts_with(&small))?;
        i64::try_from(place + 1).ok()
    }

    /// SQL for the number of the month in the column `name`.
    pub fn sql(&self, name: &str) -> String {
        format!("cast((strpos('{}', lower(left({}, 3))) + 2) / 3 as int)", self.starts, identifier(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_have_the_number_of_their_start() {
        for language in &LANGUAGES {
            let starts: Vec<char> = language.starts.chars().collect();
            for (at, name) in language.names.split(' ').enumerate() {
                let start: Vec<char> = name.chars().take(3).collect();
                let place = starts.windows(3).position(|letters| letters == start);
                assert_eq!(place.map(|place| place.div_ceil(3)), Some(at), "{name}");
                assert_eq!(place.map(|place| place % 3), Some(0), "{name}");
            }
        }
    }

    #[test]
    fn columns_of_months_are_of_one_language() {
        let numbers = |values: &[&str]| Months::of(&StringArray::from(values.to_vec())).map(|months| months.numbers);
        assert_eq!(numbers(&["Jan", "March", "DEC"]), Some(vec![Some(1), Some(3), Some(12)]));
        assert_eq!(numbers(&["Januar", "März", "Okt"]), Some(vec![Some(1), Some(3), Some(10)]));
        assert_eq!(numbers(&["enero", "dic"]), Some(vec![Some(1), Some(12)]));
        for other in [&["Jan", "x"][..], &["Ja"], &["März", "dic"], &["Marian"]] {
            assert_eq!(numbers(other), None, "{other:?}");
        }
    }
}
