//! Files of the server that statements read and write: LOAD DATA INFILE, SELECT … INTO OUTFILE.
//!
//! Invariant: all of them are below the folder that `secure_file_priv` names, wherever links lead; by default there is none.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use avocet_types::error::{ErrorCode, SqlError};

use super::permitted_files::{open_permitted, os_error, refused};
use super::state::Session;

impl Session {
    pub(super) fn open_server_file(&self, name: &str) -> Result<File, SqlError> {
        open_permitted(self.shared.globals.file_folder(), name)
    }

    /// Makes a file, which must not be there, below the folder that `secure_file_priv` names; returns it with its path.
    pub(super) fn create_server_file(&self, name: &str) -> Result<(File, PathBuf), SqlError> {
        let folder = self.shared.globals.file_folder().ok_or_else(refused)?;
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
