//! Files of the server below the folder that `secure_file_priv` names, wherever links lead; by default there is none.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use avocet_types::error::{ErrorCode, SqlError};

pub(super) fn refused() -> SqlError {
    ErrorCode::OPTION_PREVENTS_STATEMENT.with(&[&"--secure-file-priv"])
}

/// The path of a file that a statement names, links followed: error 1290 if it is not below the folder.
fn permitted_file(folder: Option<PathBuf>, name: &str) -> Result<PathBuf, SqlError> {
    let folder = folder.ok_or_else(refused)?;
    let path = Path::new(name);
    // A file that is not there is told of only where one might be.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let has_dots = real.components().any(|part| part == Component::ParentDir);
    match real.is_absolute() && !has_dots && real.starts_with(&folder) {
        true => Ok(real),
        false => Err(refused()),
    }
}

/// Opens a regular file below the folder.
pub(super) fn open_permitted(folder: Option<PathBuf>, name: &str) -> Result<File, SqlError> {
    let path = permitted_file(folder, name)?;
    let stat = |error: io::Error| {
        let (number, text) = os_error(&error);
        ErrorCode::CANT_GET_STAT.with(&[&name, &number, &text])
    };
    // Opening what is no regular file might never end.
    if !path.metadata().map_err(stat)?.is_file() {
        return Err(ErrorCode::TEXTFILE_NOT_READABLE.with(&[&name]));
    }
    File::open(path).map_err(stat)
}

/// The number of a system's error, and its text without the number that Rust adds.
pub(super) fn os_error(error: &io::Error) -> (i32, String) {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
    (error.raw_os_error().unwrap_or(0), text)
}
