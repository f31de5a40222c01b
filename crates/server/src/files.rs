//! The server's own small files in the data directory: keys and certificates.
//!
//! They hold nothing that the database needs to recover, so they are written with plain file calls, whole, under
//! a temporary name.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{path}: {source}", path = .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}: {reason}", path = .path.display())]
    Bad { path: PathBuf, reason: String },
}

impl FileError {
    pub fn bad(path: &Path, reason: impl ToString) -> Self {
        Self::Bad { path: path.to_owned(), reason: reason.to_string() }
    }

    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Io { path: path.to_owned(), source }
    }
}

/// The file's contents; `None` if there is no such file.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FileError::io(path)(source)),
    }
}

/// Writes a file that only its owner may read.
pub fn write_private(path: &Path, contents: &[u8]) -> Result<(), FileError> {
    let temporary = path.with_extension("tmp");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .map_err(FileError::io(&temporary))?;
    file.write_all(contents).and_then(|()| file.sync_all()).map_err(FileError::io(&temporary))?;
    fs::rename(&temporary, path).map_err(FileError::io(path))
}
