use super::*;

#[test]
fn an_uncommitted_file_leaves_no_trace() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, "old").unwrap();
    let mut file = AtomicFile::create(&path).unwrap();
    file.write_all(b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    drop(file);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
}

#[test]
fn a_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let error = AtomicFile::create(directory.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IsADirectory);
    let error = AtomicFile::create(&directory.path().join("missing/file")).unwrap_err();
    assert!(error.raw_os_error().is_some(), "{error}");
    assert!(!error.to_string().contains("missing"), "{error}");
}

/// The temporary file of a killed process is removed; one that another process is writing stays.
#[test]
fn files_left_behind_are_removed_by_the_next_writer() {
    let directory = tempfile::tempdir().unwrap();
    let stale = directory.path().join(".fibula-Stale1.tmp");
    fs::write(&stale, "half").unwrap();
    let other = directory.path().join("fibula-notes.tmp");
    fs::write(&other, "somebody's").unwrap();
    let mut first = AtomicFile::create(&directory.path().join("first")).unwrap();
    assert!(!stale.exists());
    first.write_all(b"1").unwrap();
    let second = AtomicFile::create(&directory.path().join("second")).unwrap();
    first.commit().unwrap();
    second.commit().unwrap();
    assert_eq!(fs::read(directory.path().join("first")).unwrap(), b"1");
    assert_eq!(fs::read(&other).unwrap(), b"somebody's");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 3);
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn new_files_are_as_readable_as_any() {
        let directory = tempfile::tempdir().unwrap();
        let (ours, any) = (directory.path().join("ours"), directory.path().join("any"));
        AtomicFile::create(&ours).unwrap().commit().unwrap();
        File::create(&any).unwrap();
        assert_eq!(mode(&ours), mode(&any));
    }

    #[test]
    fn files_that_nobody_may_write_are_replaced_by_their_kind_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.fib");
        for text in ["magic 1", "magic 2"] {
            let mut file = AtomicFile::create_read_only(&path, b"magic").unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.commit().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(mode(&path) & 0o222, 0);
        }
        let refused = [
            AtomicFile::create(&path).unwrap_err(),
            AtomicFile::create_read_only(&path, b"other").unwrap_err(),
            AtomicFile::create_read_only(&path, b"magic 2 and more").unwrap_err(),
        ];
        for error in refused {
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "magic 2");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }

    #[test]
    fn links_are_followed_to_files_that_are_not_there_yet() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("deep")).unwrap();
        let (link, second) = (directory.path().join("link"), directory.path().join("deep/second"));
        symlink("deep/second", &link).unwrap();
        symlink("file", &second).unwrap();
        for text in ["new", "newer"] {
            let mut file = AtomicFile::create(&link).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.commit().unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(fs::read_to_string(directory.path().join("deep/file")).unwrap(), text);
        }
        symlink("round", directory.path().join("round")).unwrap();
        assert!(AtomicFile::create(&directory.path().join("round")).is_err());
    }

    /// `/dev/fd/N` is the open file, whatever name it has.
    #[test]
    fn descriptors_are_written_to_and_not_replaced() {
        use std::os::fd::AsRawFd;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        fs::write(&path, "head\n").unwrap();
        let open = File::options().append(true).open(&path).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        let name = format!("/dev/fd/{}", open.as_raw_fd());
        let link = directory.path().join("link");
        symlink(&name, &link).unwrap();
        for (path, text) in [(Path::new(&name), "one\n"), (&link, "two\n")] {
            let mut file = AtomicFile::create(path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.commit().unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "head\none\ntwo\n");
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
    }

    /// Only root can change the owner; for others the test checks that the file is replaced anyway.
    #[test]
    fn the_owner_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "old").unwrap();
        let given = std::os::unix::fs::chown(&path, Some(1234), Some(4321)).is_ok();
        AtomicFile::create(&path).unwrap().commit().unwrap();
        let new = fs::metadata(&path).unwrap();
        assert_eq!(new.len(), 0);
        assert!(!given || (new.uid(), new.gid()) == (1234, 4321));
    }
}

/// A new temporary file is never mistaken for an abandoned one.
#[test]
fn writers_in_one_directory_leave_each_other_alone() {
    let directory = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let directory = directory.path();
            scope.spawn(move || {
                for n in 0..50 {
                    let mut file =
                        AtomicFile::create(&directory.join(format!("{thread}-{n}"))).unwrap();
                    file.write_all(&[n]).unwrap();
                    file.commit().unwrap();
                }
            });
        }
    });
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 200);
}
