//! Names of months in the large languages of Europe, and English names of weekdays.

/// The names of each month, whole and short, in lower case.
const MONTHS: [&str; 12] = [
    "january jan januar jänner jän janvier janv enero ene gennaio gen janeiro januari stycznia styczeń sty января январь янв",
    "february feb februar feber février fevrier févr fév fev febrero febbraio fevereiro februari lutego luty lut февраля \
     февраль фев",
    "march mar märz maerz mär mrz mars marzo março marco maart mrt marts marca marzec марта март мар",
    "april apr avril avr abril abr aprile kwietnia kwiecień kwi апреля апрель апр",
    "may mai mayo maggio mag maio mei maj maja мая май",
    "june jun juni juin junio giugno giu junho czerwca czerwiec cze июня июнь июн",
    "july jul juli juillet juil julio luglio lug julho lipca lipiec lip июля июль июл",
    "august aug août aout agosto ago augustus augusti sierpnia sierpień sie августа август авг",
    "september sep sept septembre septiembre settembre set setembro września wrzesień wrz сентября сентябрь сен сент",
    "october oct oktober okt octobre octubre ottobre ott outubro out october października październik paź октября октябрь окт",
    "november nov novembre noviembre novembro listopada listopad lis ноября ноябрь ноя нояб",
    "december dec dezember dez décembre decembre déc diciembre dic dicembre dezembro desember des grudnia grudzień gru \
     декабря декабрь дек",
];
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
/// The longest name of a month, in bytes: октября has two bytes a letter, października the most letters.
const LONGEST: usize = 24;

/// Takes the name of a month; a point may follow a short one. Also takes a name that letters follow, if it is English.
pub(super) fn take_month(rest: &mut &[u8]) -> Option<u32> {
    let run = letters(rest);
    if let Some(month) = std::str::from_utf8(run).ok().and_then(month_named) {
        let after = rest.get(run.len()..)?;
        *rest = after.strip_prefix(b".").unwrap_or(after);
        return Some(month);
    }
    take_english_month(rest)
}

/// Takes the English name of a month, whole or short, whatever letters follow.
pub(super) fn take_english_month(rest: &mut &[u8]) -> Option<u32> {
    for (month, names) in (1..).zip(MONTHS) {
        // The first two are English, the whole one and the short one.
        for name in names.split(' ').take(2) {
            if let Some(written) = rest.get(..name.len())
                && written.eq_ignore_ascii_case(name.as_bytes())
            {
                *rest = rest.get(name.len()..)?;
                return Some(month);
            }
        }
    }
    None
}

/// Takes the English name of a weekday, whole or its first three letters.
pub(super) fn take_weekday(rest: &mut &[u8]) -> Option<()> {
    let run = letters(rest);
    let is_known = WEEKDAYS.iter().any(|name| {
        let short = name.as_bytes().get(..3).unwrap_or_default();
        run.eq_ignore_ascii_case(name.as_bytes()) || run.eq_ignore_ascii_case(short)
    });
    if !is_known {
        return None;
    }
    *rest = rest.get(run.len()..)?;
    Some(())
}

/// The month that `name` names, in any case.
fn month_named(name: &str) -> Option<u32> {
    if name.is_empty() || name.len() > LONGEST {
        return None;
    }
    let lower = name.to_lowercase();
    (1..).zip(MONTHS).find(|(_, names)| names.split(' ').any(|known| known == lower)).map(|(month, _)| month)
}

/// The letters at the start; a letter beyond ASCII has bytes from 0x80 on.
fn letters<'a>(rest: &&'a [u8]) -> &'a [u8] {
    let length = rest.iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte >= 0x80).count();
    rest.get(..length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_of_several_languages() {
        let take = |text: &str| {
            let mut rest = text.as_bytes();
            take_month(&mut rest).map(|month| (month, String::from_utf8_lossy(rest).into_owned()))
        };
        let named = |text: &str| take(text).map(|(month, _)| month);
        for (text, month) in [("Januar", 1), ("févr.", 2), ("MÄRZ", 3), ("abr", 4), ("Maggio", 5), ("июня", 6)] {
            assert_eq!(named(text), Some(month), "{text}");
        }
        for (text, month) in [("juil.", 7), ("août", 8), ("wrz", 9), ("Okt", 10), ("noviembre", 11), ("Dez.", 12)] {
            assert_eq!(named(text), Some(month), "{text}");
        }
        assert_eq!(take("JanT10"), Some((1, "T10".to_owned())));
        assert_eq!(take("févr. 2021"), Some((2, " 2021".to_owned())));
        assert_eq!(take("Foo 2021"), None);
        let mut rest = &b"Thu Apr"[..];
        assert_eq!((take_weekday(&mut rest), rest), (Some(()), &b" Apr"[..]));
    }
}
