//! Files of the server that statements read and write: LOAD DATA INFILE, SELECT … INTO OUTFILE.
//!
//! Invariant: all of them are below the folder that `secure_file_priv` names, wherever links lead; by default there is none.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use avocet_types::Datum;
use avocet_types::error::{ErrorCode, SqlError};

use super::state::Session;
use super::variables::known;

fn refused() -> SqlError {
    ErrorCode::OPTION_PREVENTS_STATEMENT.with(&[&"--secure-file-priv"])
}

impl Session {
    fn file_folder(&self) -> Option<PathBuf> {
        match self.shared.globals.get(known("secure_file_priv")) {
            Datum::Str(folder) => Path::new(&*folder).canonicalize().ok(),
            _ => None,
        }
    }

    /// Opens a regular file below the folder that `secure_file_priv` names.
    pub(super) fn open_server_file(&self, name: &str) -> Result<File, SqlError> {
        let path = self.permitted_file(name)?;
        let stat = |error: io::Error| {
            let (number, text) = os_error(&error);
            ErrorCode::CANT_GET_STAT.with(&[&name, &number, &text])
        };
        let file = File::open(path).map_err(stat)?;
        // Anything else than a regular file might never end, or never begin.
        if !file.metadata().map_err(stat)?.is_file() {
            return Err(ErrorCode::TEXTFILE_NOT_READABLE.with(&[&name]));
        }
        Ok(file)
    }

    /// The path of a file that a statement names, links followed: error 1290 if it is not below `secure_file_priv`.
    fn permitted_file(&self, name: &str) -> Result<PathBuf, SqlError> {
        let folder = self.file_folder().ok_or_else(refused)?;
        let path = Path::new(name);
        // A file that is not there is told of only where one might be.
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let has_dots = real.components().any(|part| part == Component::ParentDir);
        match real.is_absolute() && !has_dots && real.starts_with(&folder) {
            true => Ok(real),
            false => Err(refused()),
        }
    }

    /// Makes a file, which must not be there, below the folder that `secure_file_priv` names; returns it with its path.
    pub(super) fn create_server_file(&self, name: &str) -> Result<(File, PathBuf), SqlError> {
        let folder = self.file_folder().ok_or_else(refused)?;
        let path = Path::new(name);
        let (Some(parent), Some(last)) = (path.parent(), path.file_name()) else { return Err(refused()) };
        // Links lead to the folder that it is made in; what has its name there is not followed.
        let parent = parent.canonicalize().map_err(|_| refused())?;
        if !path.is_absolute() || !parent.starts_with(&folder) {
            return Err(refused());
        }
        let path = parent.join(last);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o640).open(&path);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => ErrorCode::FILE_EXISTS_ERROR.with(&[&name]),
            _ => cannot_write(name, &error),
        })?;
        Ok((file, path))
    }
}

pub(super) fn cannot_write(name: &str, error: &io::Error) -> SqlError {
    let (number, text) = os_error(error);
    ErrorCode::CANT_CREATE_FILE.with(&[&name, &number, &text])
}

/// The number of a system's error, and its text without the number that Rust adds.
pub(super) fn os_error(error: &io::Error) -> (i32, String) {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
    (error.raw_os_error().unwrap_or(0), text)
}
