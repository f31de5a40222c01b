//! Names of storage engines. Tables may name MySQL's own; all are one store.

/// The name of a storage engine as MySQL writes it; `None` if no table may name it.
pub(crate) fn engine_name(name: &str) -> Option<&'static str> {
    const ENGINES: &[(&str, &str)] = &[
        ("InnoDB", "InnoDB"),
        ("Avocet", "Avocet"),
        ("MyISAM", "MyISAM"),
        ("MEMORY", "MEMORY"),
        ("HEAP", "MEMORY"),
        ("ARCHIVE", "ARCHIVE"),
        ("CSV", "CSV"),
    ];
    ENGINES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, shown)| *shown)
}

/// Whether MySQL's engine of this name enforces foreign keys.
pub(crate) fn has_foreign_keys(name: &str) -> bool {
    matches!(engine_name(name), Some("InnoDB" | "Avocet"))
}
