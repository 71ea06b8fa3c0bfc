//! Writes a run's folder: all of its files, or none if one cannot be written.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Why a run's folder could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// the path exists and is not a folder
    #[error("{}: exists and is not a folder; give the path of a folder", .0.display())]
    NotAFolder(PathBuf),
    /// the path is empty
    #[error("the folder's path is empty; give the path of a folder, . for this one")]
    NoName,
    /// the system reported an error, such as no permission or a full disk
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
        // "No space left on device (os error 28)": drops the number, which is of no use to a reader.
        if let Some(at) = reason.find(" (os error") {
            reason.truncate(at);
        }
        Self::Io { path: path.to_owned(), reason, source }
    }
}

const TRACE: &str = "trace.pcapng";

/// Makes the folder, writes the files of `add`, and renames them to their final names when all are there. Returns their paths. Removes
/// files that a killed run left in the folder.
///
/// # Errors
///
/// [`OutputError`] names the path and the system's reason. If a file cannot be written, no new file remains. If a rename fails, files renamed
/// before it stay.
pub fn whole(
    folder: &Path,
    add: impl FnOnce(&mut Pending) -> Result<(), OutputError>,
) -> Result<Vec<PathBuf>, OutputError> {
    if folder.as_os_str().is_empty() {
        return Err(OutputError::NoName);
    }
    let made = make_folder(folder)?;
    remove_abandoned(folder);
    let mut pending = Pending { folder: folder.to_owned(), files: Vec::new(), open: Vec::new() };
    let paths = add(&mut pending).and_then(|()| pending.commit());
    drop(pending);
    match &paths {
        Err(_) => remove_empty(&made),
        // A folder belongs to one run: an earlier run's packets would be taken for this run's.
        Ok(paths) if !paths.iter().any(|path| path.ends_with(TRACE)) => {
            let _ = fs::remove_file(folder.join(TRACE));
        }
        Ok(_) => {}
    }
    paths
}

/// Makes the folder and its parents; returns the folders that it made, outermost first.
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

/// Removes folders that are empty, innermost first. The system refuses to remove any other.
fn remove_empty(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        let _ = fs::remove_dir(folder);
    }
}

/// The name of a file until it is complete: hidden, and unique to this process.
fn temporary(name: &str) -> String {
    format!(".{name}.{}.tmp", std::process::id())
}

/// Whether a name has the form of [`temporary`].
fn is_temporary(name: &str) -> bool {
    let process =
        name.strip_prefix('.').and_then(|n| n.strip_suffix(".tmp")).and_then(|n| n.rsplit_once('.'));
    process.is_some_and(|(name, process)| {
        !name.is_empty() && !process.is_empty() && process.bytes().all(|b| b.is_ascii_digit())
    })
}

/// Locks a file as long as it is open. Returns false if another process holds the lock.
#[cfg(unix)]
fn lock(file: &File) -> bool {
    rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(not(unix))]
fn lock(_: &File) -> bool {
    false
}

/// Removes temporary files of processes that were killed. A process still at work holds a lock on its files.
fn remove_abandoned(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_temporary)) {
        let path = entry.path();
        let free = File::open(&path).is_ok_and(|file| lock(&file));
        if free && path.symlink_metadata().is_ok_and(|about| about.is_file()) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Files under temporary names. Files not committed are removed on drop.
pub struct Pending {
    folder: PathBuf,
    /// Temporary and final path of each file.
    files: Vec<(PathBuf, PathBuf)>,
    /// The files, locked as long as they are open.
    open: Vec<File>,
}

impl Pending {
    /// Writes one file under a temporary name and syncs it.
    ///
    /// # Errors
    ///
    /// As [`whole`].
    pub fn add(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let path = self.folder.join(name);
        let failed = |error| OutputError::io(&path, error);
        if path.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        let temporary = self.folder.join(temporary(name));
        let file = File::create(&temporary).map_err(failed)?;
        self.files.push((temporary, path.clone()));
        // Where files cannot be locked, another run may take this file for abandoned. This run then fails with an error.
        lock(&file);
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let written = write(&mut out).and_then(|()| out.flush()).and_then(|()| out.get_ref().sync_all());
        // `into_parts` because dropping the writer would try once more to write its buffer.
        self.open.push(out.into_parts().0);
        written.map_err(failed)
    }

    /// Writes a document as JSON.
    ///
    /// # Errors
    ///
    /// As [`whole`].
    pub fn add_json(&mut self, name: &str, document: &impl serde::Serialize) -> Result<(), OutputError> {
        self.add(name, |out| {
            serde_json::to_writer_pretty(&mut *out, document)?;
            out.write_all(b"\n")
        })
    }

    /// Writes captured packets, and the Wireshark dissector of their headers.
    ///
    /// # Errors
    ///
    /// As [`whole`].
    pub fn add_trace(
        &mut self,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        self.add(TRACE, write)?;
        self.add("flowstamp.lua", |out| out.write_all(flowstamp_wire::DISSECTOR.as_bytes()))
    }

    /// Renames every file to its final name.
    fn commit(&mut self) -> Result<Vec<PathBuf>, OutputError> {
        let mut paths = Vec::with_capacity(self.files.len());
        // One at a time: if this fails midway, `drop` removes the rest.
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Files of killed runs go; files that another run is writing, and files with other names, stay.
    #[test]
    fn abandoned_files_go_with_the_next_run() {
        let folder = std::env::temp_dir().join(format!("flowstamp-folder-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let names = [
            ".summary.json.1.tmp",
            ".flows.parquet.4194304.tmp",
            ".summary.json.tmp",
            ".notes.tmp",
            "a.7.tmp",
            ".series.parquet.7.tmp",
        ];
        for name in names {
            fs::write(folder.join(name), "half").expect("a file");
        }
        let busy = File::open(folder.join(".series.parquet.7.tmp")).expect("a file");
        assert!(lock(&busy));
        let write = |pending: &mut Pending| pending.add("summary.json", |out| out.write_all(b"whole"));
        let written = whole(&folder, write).expect("it is written");
        assert_eq!(written, [folder.join("summary.json")]);
        let mut left: Vec<_> =
            fs::read_dir(&folder).expect("a folder").flatten().map(|e| e.file_name()).collect();
        left.sort();
        assert_eq!(
            left,
            [".notes.tmp", ".series.parquet.7.tmp", ".summary.json.tmp", "a.7.tmp", "summary.json"]
        );
        drop(busy);
        whole(&folder, write).expect("it is written");
        assert!(!folder.join(".series.parquet.7.tmp").exists());
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
