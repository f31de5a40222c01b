//! Debian packages without installing them: apt, pointed at state folders of its own, downloads by name and `dpkg-deb`
//! unpacks. Nothing of the machine is changed, no service starts, and no root is needed.
//!
//! The mirror is the machine's own; for packages of unstable the suite is swapped and the mirror kept.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::cache;
use crate::error::{Error, IoContext, Result};

/// Which Debian suite to take packages from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// What the machine itself runs.
    OfThisMachine,
    Unstable,
}

/// Downloads `packages` and unpacks them into `root`. Names that the suite does not have (libraries are renamed over the
/// years) are left out; a server that then lacks a library says so itself.
pub fn unpack(suite: Suite, packages: &[&str], root: &Path) -> Result<()> {
    let state = cache::Scratch::new("apt")?;
    let apt = Apt::new(suite, state.path())?;
    apt.run("apt-get", &["update", "-qq"])?;
    let known = apt.run("apt-cache", &["pkgnames"])?;
    let known: std::collections::HashSet<&str> = known.lines().collect();
    let mut arguments = vec!["download", "-qq"];
    arguments.extend(packages.iter().filter(|p| known.contains(*p)));
    apt.run("apt-get", &arguments)?;
    for entry in fs::read_dir(&apt.downloads).context(|| "listing downloads".into())? {
        let deb = entry.context(|| "listing downloads".into())?.path();
        cache::run(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(root))?;
    }
    Ok(())
}

/// One apt with its own lists, cache and, for unstable, sources.
struct Apt {
    options: Vec<String>,
    downloads: std::path::PathBuf,
}

impl Apt {
    fn new(suite: Suite, state: &Path) -> Result<Apt> {
        for folder in ["lists/partial", "cache/archives/partial", "downloads"] {
            fs::create_dir_all(state.join(folder)).context(|| format!("creating {folder}"))?;
        }
        let mut options = vec![
            format!("Dir::State::Lists={}", state.join("lists").display()),
            format!("Dir::Cache={}", state.join("cache").display()),
            "Acquire::Languages=none".into(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".into(),
            "APT::Sandbox::User=root".into(),
        ];
        if suite == Suite::Unstable {
            let list = state.join("sources.list");
            let keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
            let source = format!("deb [signed-by={keyring}] {} unstable main\n", mirror()?);
            fs::write(&list, source).context(|| format!("writing {}", list.display()))?;
            options.push(format!("Dir::Etc::SourceList={}", list.display()));
            options.push("Dir::Etc::SourceParts=/dev/null".into());
            options.push("Acquire::Check-Valid-Until=false".into());
        }
        Ok(Apt { options, downloads: state.join("downloads") })
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(program);
        for option in &self.options {
            command.args(["-o", option]);
        }
        cache::run(command.args(arguments).current_dir(&self.downloads))
    }
}

/// The first Debian mirror among the machine's package sources.
fn mirror() -> Result<String> {
    let targets = cache::run(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(REPO_URI)",
        "Created-By: Packages",
        "Origin: Debian",
    ]))?;
    targets.lines().find(|uri| !uri.contains("security")).map(str::to_owned).ok_or_else(|| {
        Error::Setup("no Debian mirror among this machine's package sources; run apt-get update".into())
    })
}
