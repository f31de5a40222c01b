//! One database server as a child process, measured through `/proc`.
//!
//! Invariants: the child never outlives its `Server` (dropped = killed); its port was free when it was chosen and is kept over
//! restarts, so that clients find it again.

use std::fs::{self, File};
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use mysql::{Conn, OptsBuilder};
use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, IoContext, Result};

/// How one kind of server is brought up; see `mariadb`, `mysql9` and `avocet`.
pub trait Launch: Send + Sync {
    /// The name in tables and JSON.
    fn name(&self) -> &'static str;
    /// Fills an empty data directory, where the server does not do that itself.
    fn initialize(&self, data: &Path) -> Result<()>;
    /// The command that serves `data` there.
    fn serve(&self, data: &Path, at: &Endpoint) -> Command;
}

/// Where a server is reached: both on this machine.
pub struct Endpoint {
    /// On loopback.
    pub port: u16,
    /// A Unix socket.
    pub socket: PathBuf,
}

/// How clients connect.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, ValueEnum)]
pub enum Way {
    /// TCP over loopback
    #[default]
    Tcp,
    /// A Unix socket, as clients do that are told `localhost`
    Socket,
}

/// How long a server may take until it answers; recovery of a long log is measured inside it.
const START_LIMIT: Duration = Duration::from_secs(600);

/// A running server and what is needed to start it again.
pub struct Server {
    launch: Box<dyn Launch>,
    data: PathBuf,
    log: PathBuf,
    endpoint: Endpoint,
    way: Way,
    child: Child,
}

impl Server {
    /// Initialises `folder/data` and starts a server on it; returns when it answers.
    pub fn start(launch: Box<dyn Launch>, folder: &Path) -> Result<Server> {
        let data = folder.join("data");
        fs::create_dir_all(&data).context(|| format!("creating {}", data.display()))?;
        launch.initialize(&data)?;
        let endpoint = Endpoint { port: free_port()?, socket: folder.join("s.sock") };
        let log = folder.join("server.log");
        let child = spawn(launch.as_ref(), &data, &endpoint, &log)?;
        let mut server = Server { launch, data, log, endpoint, way: Way::default(), child };
        server.wait_until_it_answers()?;
        Ok(server)
    }

    pub fn name(&self) -> &'static str {
        self.launch.name()
    }

    pub fn port(&self) -> u16 {
        self.endpoint.port
    }

    /// The socket, if that is how clients connect.
    pub fn socket(&self) -> Option<&Path> {
        (self.way == Way::Socket).then_some(&self.endpoint.socket)
    }

    /// The same server for clients that connect this way.
    pub fn through(mut self, way: Way) -> Server {
        self.way = way;
        self
    }

    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Connection options for the user root with no password, no default database.
    pub fn options(&self) -> OptsBuilder {
        options(self.port()).socket(self.socket().and_then(Path::to_str))
    }

    /// Sends SIGKILL and collects the child: what a power cut leaves of the process.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill().context(|| "killing the server".into())?;
        self.child.wait().context(|| "waiting for the server".into())?;
        Ok(())
    }

    /// Asks the server to end (SIGTERM) and waits.
    pub fn stop(&mut self) -> Result<()> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).map_err(|e| Error::Setup(format!("stopping the server: {e}")))?;
        self.child.wait().context(|| "waiting for the server".into())?;
        Ok(())
    }

    /// Starts the server again on its data and port after `kill` or `stop`; returns the time until it answered.
    pub fn start_again(&mut self) -> Result<Duration> {
        let begin = Instant::now();
        self.child = spawn(self.launch.as_ref(), &self.data, &self.endpoint, &self.log)?;
        self.wait_until_it_answers()?;
        Ok(begin.elapsed())
    }

    /// CPU time, user and system, that the process has used so far.
    pub fn cpu_time(&self) -> Result<Duration> {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = fs::read_to_string(&path).context(|| path.clone())?;
        let ticks = stat_ticks(&stat).ok_or_else(|| Error::Setup(format!("{path} is not as expected")))?;
        let per_second = rustix::param::clock_ticks_per_second();
        Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
    }

    /// The largest resident set that the process has had, in bytes.
    pub fn peak_rss(&self) -> Result<u64> {
        peak_rss(self.child.id())
    }

    /// The resident set now, in bytes.
    pub fn rss(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(&path).context(|| path.clone())?;
        let kib = status_kib(&status, "VmRSS:");
        kib.map(|kib| kib * 1024).ok_or_else(|| Error::Setup(format!("{path} has no VmRSS")))
    }

    /// Forgets the peak so far, so that the next reading is that of the next phase.
    pub fn reset_peak_rss(&self) -> Result<()> {
        let path = format!("/proc/{}/clear_refs", self.child.id());
        fs::write(&path, "5").context(|| path.clone())
    }

    fn wait_until_it_answers(&mut self) -> Result<()> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().context(|| "waiting for the server".into())? {
                return Err(self.failed(&format!("ended with {status}")));
            }
            if let Ok(mut conn) = Conn::new(self.options())
                && mysql::prelude::Queryable::query_drop(&mut conn, "SELECT 1").is_ok()
            {
                return Ok(());
            }
            if begin.elapsed() > START_LIMIT {
                return Err(self.failed("did not answer in time"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn failed(&self, how: &str) -> Error {
        let mut text = String::new();
        if let Ok(mut file) = File::open(&self.log) {
            let mut bytes = Vec::new();
            if file.read_to_end(&mut bytes).is_ok() {
                let tail = bytes.len().saturating_sub(4000);
                text = String::from_utf8_lossy(&bytes[tail..]).into_owned();
            }
        }
        Error::Setup(format!("{} {how}; its log ends with\n{text}", self.name()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The child may be gone already: then both calls have nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connection options for loopback at `port`.
pub fn options(port: u16) -> OptsBuilder {
    OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .user(Some("root"))
        .prefer_socket(false)
        .max_allowed_packet(Some(64 << 20))
        .stmt_cache_size(256)
}

fn spawn(launch: &dyn Launch, data: &Path, at: &Endpoint, log: &Path) -> Result<Child> {
    let out = File::options()
        .create(true)
        .append(true)
        .open(log)
        .context(|| format!("opening {}", log.display()))?;
    let err = out.try_clone().context(|| "sharing the log file".into())?;
    let mut command = launch.serve(data, at);
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    command.spawn().context(|| format!("starting {} ({:?})", launch.name(), command.get_program()))
}

/// A port of loopback that nobody listens at.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context(|| "looking for a free port".into())?;
    Ok(listener.local_addr().context(|| "looking for a free port".into())?.port())
}

/// utime + stime of `/proc/PID/stat`; the fields are counted from the last parenthesis, since the name may hold blanks.
fn stat_ticks(stat: &str) -> Option<u64> {
    let after_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_name.split_ascii_whitespace();
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// The largest resident set that a process has had, in bytes.
pub fn peak_rss(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).context(|| path.clone())?;
    let kib = status_kib(&status, "VmHWM:");
    kib.map(|kib| kib * 1024).ok_or_else(|| Error::Setup(format!("{path} has no VmHWM")))
}

fn status_kib(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_cpu_time_past_a_name_with_blanks() {
        let stat = "12 (a b) c) S 1 2 3 4 5 6 7 8 9 10 700 34 0 0 20 0 1 0 1";
        assert_eq!(stat_ticks(stat), Some(734));
    }

    #[test]
    fn reads_the_peak() {
        assert_eq!(status_kib("Name:\tx\nVmHWM:\t   1234 kB\n", "VmHWM:"), Some(1234));
        assert_eq!(status_kib("Name:\tx\n", "VmHWM:"), None);
    }
}
