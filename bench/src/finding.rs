//! What a check of answers found: every workload ends with some of these, and fails if one of them is broken.

/// One condition and whether it holds.
pub struct Finding {
    pub name: String,
    /// Rows that break it, or a description of what is missing.
    pub broken: Option<String>,
}

impl Finding {
    /// A condition that holds, or is broken as `how` says.
    pub fn new(name: impl Into<String>, holds: bool, how: impl FnOnce() -> String) -> Finding {
        Finding { name: name.into(), broken: (!holds).then(how) }
    }
}

/// Prints the findings and tells whether all hold.
pub fn print(title: &str, findings: &[Finding]) -> bool {
    println!("{title}");
    for finding in findings {
        match &finding.broken {
            None => println!("  holds   {}", finding.name),
            Some(how) => println!("  BROKEN  {}: {how}", finding.name),
        }
    }
    findings.iter().all(|finding| finding.broken.is_none())
}
