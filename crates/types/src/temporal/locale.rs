//! The names of months and days in the locales of `lc_time_names` (MySQL Reference Manual, 12.16 "MySQL Server Locale
//! Support").
//!
//! `locales.tsv` has a line for each locale, in the order of MySQL's numbers: its name, the months, their short names, the days
//! from Monday on, and their short names; names within a list are divided by `|`.

use std::sync::OnceLock;

use super::weekday;

/// What `lc_time_names` chooses.
#[derive(Debug)]
pub struct Locale {
    pub name: &'static str,
    months: [&'static str; 12],
    short_months: [&'static str; 12],
    days: [&'static str; 7],
    short_days: [&'static str; 7],
    longest_day_name: u32,
    longest_month_name: u32,
}

static TABLE: &str = include_str!("locales.tsv");

fn names<const N: usize>(list: &'static str) -> [&'static str; N] {
    let names: Vec<_> = list.split('|').collect();
    names.try_into().expect("the table has a name for each")
}

impl Locale {
    pub fn all() -> &'static [Self] {
        static ALL: OnceLock<Vec<Locale>> = OnceLock::new();
        ALL.get_or_init(|| {
            let locale = |line: &'static str| {
                let mut fields = line.split('\t');
                let mut field = || fields.next().expect("the table has five fields a line");
                let name = field();
                let (months, short_months) = (names(field()), names(field()));
                let (days, short_days) = (names(field()), names(field()));
                let (longest_day_name, longest_month_name) = (longest(&days), longest(&months));
                Locale { name, months, short_months, days, short_days, longest_day_name, longest_month_name }
            };
            TABLE.lines().map(locale).collect()
        })
    }

    /// `en_US`
    pub fn english() -> &'static Self {
        &Self::all()[0]
    }

    /// By name, in whatever case.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        Self::all().iter().find(|locale| locale.name.eq_ignore_ascii_case(name))
    }

    /// The name of month 1..=12.
    pub fn month_name(&self, month: u32) -> &'static str {
        self.months[month as usize - 1]
    }

    pub fn short_month_name(&self, month: u32) -> &'static str {
        self.short_months[month as usize - 1]
    }

    pub fn day_name(&self, days: i32) -> &'static str {
        self.days[weekday(days) as usize]
    }

    pub fn short_day_name(&self, days: i32) -> &'static str {
        self.short_days[weekday(days) as usize]
    }

    /// Characters of the longest name of a day.
    pub fn longest_day_name(&self) -> u32 {
        self.longest_day_name
    }

    /// Characters of the longest name of a month.
    pub fn longest_month_name(&self) -> u32 {
        self.longest_month_name
    }
}

fn longest(names: &[&str]) -> u32 {
    names.iter().map(|name| name.chars().count()).max().unwrap_or(0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_locale_has_its_names() {
        assert_eq!(Locale::all().len(), 111);
        let german = Locale::by_name("DE_de").expect("known");
        assert_eq!((german.name, german.month_name(3), german.short_month_name(3)), ("de_DE", "März", "Mär"));
        // 1970-01-05 was a Monday.
        assert_eq!((german.day_name(4), german.short_day_name(4)), ("Montag", "Mo"));
        assert_eq!((german.longest_day_name(), german.longest_month_name()), (10, 9));
        assert_eq!(Locale::english().day_name(3), "Sunday");
        assert!(Locale::by_name("de").is_none());
    }
}
