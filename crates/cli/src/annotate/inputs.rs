//! Which files are annotated, and where their results go.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fibula_annotate::LogFormat;

use crate::failure::Failure;

/// A file and its result. The path `-` is standard input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The file to read.
    pub input: PathBuf,
    /// The file to write.
    pub output: PathBuf,
}

impl Job {
    /// Refuses an output whose name ending does not match the format of its content.
    pub fn check_name(&self, format: LogFormat) -> Result<(), Failure> {
        use LogFormat::{Arrow, Csv, Flows, JsonLines, List, Parquet, Pcap, Tsv};
        let is_named_so = match LogFormat::from_path(&self.output) {
            None => true,
            // The rows of flows follow the name.
            Some(Csv | Tsv | JsonLines | List) if format == Flows => true,
            Some(Csv | Tsv) => matches!(format, Csv | Tsv | List | Pcap),
            Some(List) => !matches!(format, Parquet | Arrow),
            Some(named @ (JsonLines | Parquet | Arrow)) => named == format,
            Some(_) => false,
        };
        if is_named_so {
            return Ok(());
        }
        let written = if matches!(format, Pcap | Flows) { Csv } else { format };
        let ending = if format == List { "txt" } else { written.name() };
        Err(Failure::new(format_args!(
            "{}: its name ending is of another format than {written}, the format of the results of {}",
            self.output.display(),
            self.input.display()
        ))
        .hint(format_args!("results have the format of the data: name it .{ending}")))
    }
}

/// The files that the arguments name: files, patterns such as `logs/*.parquet`, and directories, of which all files
/// with a known ending are taken. With one file, `output` is the result's file or its directory; with several files
/// it is a directory.
pub fn jobs(arguments: &[PathBuf], output: &Path) -> Result<Vec<Job>, Failure> {
    let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
    let mut several = arguments.len() > 1;
    for argument in arguments {
        if argument.is_dir() {
            several = true;
            let before = found.len();
            walk(argument, Path::new(""), &mut found)?;
            if found.len() == before {
                let message = format_args!("{}: no files with a known ending", argument.display());
                return Err(Failure::new(message)
                    .hint("name the files, or a pattern such as 'logs/*', with --format"));
            }
        } else if let Some(pattern) = pattern(argument) {
            several = true;
            found.extend(matches(pattern)?.into_iter().map(|path| (name(&path), path)));
        } else {
            found.push((name(argument), argument.clone()));
        }
    }
    let into = output.as_os_str() != "-"
        && (output.is_dir()
            || output.to_string_lossy().ends_with(['/', std::path::MAIN_SEPARATOR]));
    if !several && !into {
        let output = output.to_owned();
        return Ok(found
            .into_iter()
            .map(|(_, input)| Job { input, output: output.clone() })
            .collect());
    }
    if !into {
        return Err(Failure::new("several files need a directory for their results")
            .hint("-o DIRECTORY/ names one; it is made if it is not there"));
    }
    let mut results: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    let mut jobs = Vec::new();
    for (name, input) in found {
        if input.as_os_str() == "-" {
            return Err(Failure::new("standard input has no name for a file in a directory")
                .hint("-o FILE names one"));
        }
        let target = output.join(result_name(&name));
        if let Some(other) = results.insert(target.clone(), input.clone()) {
            let (a, b, target) = (other.display(), input.display(), target.display());
            return Err(Failure::new(format_args!("{a} and {b} would both become {target}"))
                .hint("annotate them one after the other, into different directories"));
        }
        jobs.push(Job { input, output: target });
    }
    Ok(jobs)
}

fn name(path: &Path) -> PathBuf {
    path.file_name().map_or_else(|| path.to_owned(), PathBuf::from)
}

/// The name of the output file: without the suffix of a compression, and ending in `.csv` for packets and flows.
fn result_name(name: &Path) -> PathBuf {
    let ending = |path: &Path| path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    let compressed = ending(name).is_some_and(|e| matches!(&*e, "gz" | "bz2" | "xz" | "zst"));
    let mut name = if compressed { name.with_extension("") } else { name.to_owned() };
    if let Some(LogFormat::Pcap | LogFormat::Flows) = LogFormat::from_path(&name) {
        name.as_mut_os_string().push(".csv");
    }
    name
}

/// The argument as a pattern, if it has pattern characters and no file has this name.
fn pattern(argument: &Path) -> Option<&str> {
    argument.to_str().filter(|text| text.contains(['*', '?', '[']) && !argument.exists())
}

fn matches(pattern: &str) -> Result<Vec<PathBuf>, Failure> {
    let paths = glob::glob(pattern)
        .map_err(|error| Failure::new(format_args!("{pattern}: {}", error.msg)))?;
    let mut found = Vec::new();
    for path in paths {
        let path = path.map_err(|error| Failure::io(error.path().display(), error.error()))?;
        if path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(Failure::new(format_args!("{pattern}: no file is called like that")));
    }
    Ok(found)
}

/// All files below a directory whose ending gives their format, in order.
fn walk(
    directory: &Path,
    inside: &Path,
    found: &mut Vec<(PathBuf, PathBuf)>,
) -> Result<(), Failure> {
    let fail = |error| Failure::io(directory.display(), &error);
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        entries.push(entry.map_err(fail)?);
    }
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        // Hidden files are temporary files of fibula or of other programs.
        if name.to_string_lossy().starts_with('.') {
            continue;
        }
        let inside = inside.join(name);
        // Symbolic links are not followed, because they may form cycles.
        match entry.file_type().map_err(fail)? {
            kind if kind.is_dir() => walk(&path, &inside, found)?,
            _ if LogFormat::from_path(&path).is_some() && path.is_file() => {
                found.push((inside, path))
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_names() {
        for (name, result) in
            [("a.csv", "a.csv"), ("x/a.csv.gz", "x/a.csv"), ("a.pcap.xz", "a.pcap.csv"), ("a", "a")]
        {
            assert_eq!(result_name(Path::new(name)), Path::new(result));
        }
    }
}
