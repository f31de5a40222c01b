//! Avocet and the rival side by side: both are started, both run the same workload in alternating rounds, so that whatever else
//! the machine does hits them alike.

use crate::cache::Scratch;
use crate::error::Result;
use crate::options::Common;
use crate::rival::avocet::Avocet;
use crate::rival::{Launch, Server};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contender {
    Avocet,
    Rival,
}

/// The running servers and their scratch folder; all end when it is dropped.
pub struct Contest {
    servers: Vec<(Contender, Server)>,
    /// Removed when the servers are gone, which is why it comes after them.
    _scratch: Scratch,
}

impl Contest {
    /// Starts Avocet (unless it is left out) and a rival that speaks the MySQL protocol.
    pub fn start(common: &Common) -> Result<Contest> {
        Self::start_with(common, || Ok(Box::new(Avocet::find(&common.serve_option)?)))
    }

    /// The same with a launcher of Avocet of the caller's.
    pub fn start_with(common: &Common, avocet: impl FnOnce() -> Result<Box<dyn Launch>>) -> Result<Contest> {
        let mut launches: Vec<(Contender, Box<dyn Launch>)> = Vec::new();
        if !common.without_avocet {
            launches.push((Contender::Avocet, avocet()?));
        }
        launches.extend(common.rival.launch()?.map(|launch| (Contender::Rival, launch)));
        let scratch = Scratch::new("contest")?;
        let mut servers = Vec::new();
        for (contender, launch) in launches {
            let folder = scratch.path().join(launch.name());
            servers.push((contender, Server::start(launch, &folder)?.through(common.through)));
        }
        Ok(Contest { servers, _scratch: scratch })
    }

    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().map(|(_, server)| server)
    }

    pub fn each(&self) -> impl Iterator<Item = (Contender, &Server)> {
        self.servers.iter().map(|(contender, server)| (*contender, server))
    }

    pub fn each_mut(&mut self) -> impl Iterator<Item = (Contender, &mut Server)> {
        self.servers.iter_mut().map(|(contender, server)| (*contender, server))
    }
}

/// The middle value (the mean of the middle two); none of nothing.
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    match n {
        0 => None,
        _ => Some((sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0),
    }
}

/// The geometric mean; none of nothing.
pub fn geomean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some((values.iter().map(|v| v.max(1e-9).ln()).sum::<f64>() / values.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_geometric_means() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), Some(2.5));
        assert_eq!(median(std::iter::empty()), None);
        assert!((geomean(&[1.0, 4.0]).unwrap() - 2.0).abs() < 1e-12);
    }
}
