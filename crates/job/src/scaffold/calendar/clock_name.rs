//! What the name of a column of clock times says: the time of day of its row, or something else.

/// What a column of clock times holds by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockName {
    /// The time of day of the row, as `Time`, `Uhrzeit` and `start_time` do.
    TimeOfDay,
    /// Anything: `column_2`, `Arrival`.
    Neutral,
    /// Perhaps the time of day of a part of what the row is of, as `Peak Time` does.
    Undecided,
    /// A duration, or the time of day of something that happens every day: `Moving Time`, `Sunrise`.
    Other,
}

/// Words in the names of times of day.
const TIMES_OF_DAY: &str = "\
    time clock hour hours hhmm hhmmss tod start started begin from when at local utc gmt \
    zeit uhr beginn von heure heures début debut hora horas inicio inicial início ora ore orario inizio tijd tijdstip \
    uur tid tidpunkt klockslag klokkeslett kl czas godzina godz čas cas hodina idő idö saat время час ώρα aika kello klo";
/// The ends of German and Dutch compounds of such names, as in `Startzeit` and `begintijd`.
const COMPOUNDS: [&str; 3] = ["zeit", "tijd", "time"];
/// Words in the names of times of a part of what a row is of.
const UNDECIDED: &str = "\
    peak max maximum min minimum high low best finish spitze spitzenzeit höchst tiefst pic pointe pico picco piek";
/// Words in the names of durations and paces, and of what happens once a day.
const OTHERS: &str = "\
    duration elapsed moving wait waiting pace split lap laps avg average mean median total sum longest shortest \
    fastest slowest net gross gun chip response reaction latency delay lag lead cycle idle active inactive up uptime \
    down downtime run running runtime overtime lifetime leadtime travel trip transit sleep asleep awake rem deep rest \
    recovery work worked working break billable talk hold handle queue remaining left timeout offset timezone gap \
    interval length age spent taken flight flying sunshine daylight usage \
    sunrise sunset moonrise moonset dawn dusk twilight noon zenith \
    dauer fahrzeit fahrtzeit laufzeit wartezeit spielzeit standzeit stillstandszeit betriebszeit arbeitszeit reisezeit \
    flugzeit zykluszeit reaktionszeit antwortzeit rüstzeit pausenzeit pause ruhezeit restzeit verweilzeit schlafzeit \
    rundenzeit bestzeit zwischenzeit gesamtzeit nettozeit bruttozeit einschaltzeit ausfallzeit sonnenscheindauer \
    sonnenaufgang sonnenuntergang mondaufgang monduntergang aufgang untergang \
    durée duree attente allure moyen moyenne écoulé ecoule lever coucher \
    duración duracion espera ritmo media transcurrido amanecer atardecer orto ocaso \
    duração duracao decorrido nascer ocorrido durata attesa passo trascorso alba tramonto \
    duur wachttijd reistijd looptijd werktijd rijtijd zonsopgang zonsondergang \
    varaktighet varighed varighet soluppgång solnedgång soloppgang kesto trwania oczekiwania trvání doba süre \
    продолжительность длительность ожидание восход закат";

impl ClockName {
    /// What the words of a column's name say. `Moving Time` is a duration, although its last word is that of a time of day.
    pub fn of(words: &[String]) -> Self {
        let is_one_of = |list: &str| words.iter().any(|word| list.split_whitespace().any(|listed| listed == word));
        let is_compound = |word: &String| COMPOUNDS.iter().any(|end| word.len() > end.len() && word.ends_with(end));
        if is_one_of(OTHERS) {
            Self::Other
        } else if is_one_of(UNDECIDED) {
            Self::Undecided
        } else if is_one_of(TIMES_OF_DAY) || words.iter().any(is_compound) {
            Self::TimeOfDay
        } else {
            Self::Neutral
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_durations_are_no_times_of_day() {
        let of = |name: &str| {
            let words: Vec<String> = name.split([' ', '_']).map(str::to_lowercase).collect();
            ClockName::of(&words)
        };
        for name in ["Time", "time_utc", "HHMM", "Uhrzeit", "Messzeit", "Hora", "Heure", "ora", "begintijd"] {
            assert_eq!(of(name), ClockName::TimeOfDay, "{name}");
        }
        for name in [
            "Duration",
            "Moving Time",
            "elapsed_time",
            "Avg Wait",
            "Dauer",
            "Fahrzeit",
            "Sunrise",
            "Durée",
            "runtime",
            "Lap Time",
        ] {
            assert_eq!(of(name), ClockName::Other, "{name}");
        }
        assert_eq!(of("Peak Time"), ClockName::Undecided);
        assert_eq!(of("column_2"), ClockName::Neutral);
    }
}
