//! A run's folder: all of its files, or none.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Why a run's folder could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// the path exists and is no folder
    #[error("{}: exists and is not a folder; give the path of a folder", .0.display())]
    NotAFolder(PathBuf),
    /// the system refused: not writable, disk full
    #[error("{}: cannot be written: {reason}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason, in its words.
        reason: String,
        /// The system's error.
        source: io::Error,
    },
}

impl OutputError {
    fn io(path: &Path, source: io::Error) -> Self {
        let mut reason = source.to_string().replace('\n', " ");
        // "No space left on device (os error 28)": the number helps nobody.
        if let Some(at) = reason.find(" (os error") {
            reason.truncate(at);
        }
        Self::Io { path: path.to_owned(), reason, source }
    }
}

pub(super) const TRACE: &str = "trace.pcapng";

/// Makes the folder, adds files by `add`, and gives them their names if all are there.
pub(super) fn whole(
    folder: &Path,
    add: impl FnOnce(&mut Pending) -> Result<(), OutputError>,
) -> Result<Vec<PathBuf>, OutputError> {
    let made = make_folder(folder)?;
    let mut pending = Pending { files: Vec::new() };
    let paths = add(&mut pending).and_then(|()| pending.commit());
    drop(pending);
    match &paths {
        Err(_) => remove_empty(&made),
        // A folder is one run's: packets of an earlier run would be taken for this one's.
        Ok(paths) if !paths.iter().any(|path| path.ends_with(TRACE)) => {
            let _ = fs::remove_file(folder.join(TRACE));
        }
        Ok(_) => {}
    }
    paths
}

/// Makes the folder and those above it; returns the ones that were made, outermost first.
fn make_folder(folder: &Path) -> Result<Vec<PathBuf>, OutputError> {
    let mut missing = Vec::new();
    for path in folder.ancestors().filter(|path| !path.as_os_str().is_empty()) {
        if path.is_dir() {
            break;
        }
        if path.symlink_metadata().is_ok() {
            return Err(OutputError::NotAFolder(path.to_owned()));
        }
        missing.push(path.to_owned());
    }
    missing.reverse();
    for (index, path) in missing.iter().enumerate() {
        match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                remove_empty(&missing[..index]);
                return Err(OutputError::io(path, error));
            }
            _ => {}
        }
    }
    Ok(missing)
}

/// Removes folders, innermost first, as long as they are empty: the system refuses to remove any other.
fn remove_empty(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        let _ = fs::remove_dir(folder);
    }
}

/// Files under temporary names; those not committed are removed when this goes.
pub(super) struct Pending {
    /// Temporary name, final name.
    files: Vec<(PathBuf, PathBuf)>,
}

impl Pending {
    /// Writes one file under a temporary name and syncs it.
    pub(super) fn add(
        &mut self,
        folder: &Path,
        name: &str,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let path = folder.join(name);
        let failed = |error| OutputError::io(&path, error);
        if path.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        let temporary = folder.join(format!(".{name}.{}.tmp", std::process::id()));
        let file = File::create(&temporary).map_err(failed)?;
        self.files.push((temporary, path.clone()));
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let written = write(&mut out).and_then(|()| out.flush()).and_then(|()| out.get_ref().sync_all());
        if written.is_err() {
            // Else it would try once more to write what it holds.
            drop(out.into_parts());
        }
        written.map_err(failed)
    }

    /// Gives every file its name.
    fn commit(&mut self) -> Result<Vec<PathBuf>, OutputError> {
        let mut paths = Vec::with_capacity(self.files.len());
        // One by one: where this fails midway, the rest is removed.
        while let Some((temporary, path)) = self.files.first() {
            fs::rename(temporary, path).map_err(|error| OutputError::io(path, error))?;
            paths.push(self.files.remove(0).1);
        }
        Ok(paths)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        for (temporary, _) in &self.files {
            let _ = fs::remove_file(temporary);
        }
    }
}
