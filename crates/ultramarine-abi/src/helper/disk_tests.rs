//! Tests of the disk cache: entries that are read back, and files that are rejected.

use super::*;

const FORMAT: Format = Format { magic: *b"UMTEST\0\x01", ending: "code" };

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("ultramarine-disk-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn disk(&self) -> Disk {
        Disk::open(self.0.join("kept"), FORMAT).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn entry(text: &str) -> Entry {
    Entry { image: text.as_bytes().to_vec(), names: vec!["_Z1f".into(), "_Z1gIfEvv".into()] }
}

#[test]
fn what_is_kept_is_found_by_another_process_too() {
    let place = Place::new("found");
    place.disk().put(b"a key", &entry("code")).unwrap();
    let nameless = Entry { image: b"more".to_vec(), names: vec![] };
    place.disk().put(b"another", &nameless).unwrap();
    assert_eq!(place.disk().get(b"a key"), Some(entry("code")));
    assert_eq!(place.disk().get(b"another"), Some(nameless));
    assert_eq!(place.disk().get(b"a kez"), None);
    place.disk().put(b"a key", &entry("newer code")).unwrap();
    assert_eq!(place.disk().get(b"a key"), Some(entry("newer code")));
    place.disk().remove(b"a key");
    assert_eq!(place.disk().get(b"a key"), None);
}

#[test]
fn a_file_of_another_key_is_not_believed() {
    let place = Place::new("key");
    let disk = place.disk();
    disk.put(b"mine", &entry("code")).unwrap();
    // Simulate two keys with the same hash.
    fs::rename(disk.path(b"mine"), disk.path(b"yours")).unwrap();
    assert_eq!(disk.get(b"yours"), None);
}

#[test]
fn damaged_files_are_ignored_and_replaced() {
    let place = Place::new("damaged");
    let disk = place.disk();
    disk.put(b"key", &entry("some code of a kernel")).unwrap();
    let path = disk.path(b"key");
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        assert_eq!(disk.get(b"key"), None, "cut to {length} bytes");
    }
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        fs::write(&path, &changed).unwrap();
        assert_eq!(disk.get(b"key"), None, "byte {at} changed");
    }
    let mut longer = whole.clone();
    longer.push(0);
    fs::write(&path, &longer).unwrap();
    assert_eq!(disk.get(b"key"), None);
    disk.put(b"key", &entry("some code of a kernel")).unwrap();
    assert_eq!(disk.get(b"key"), Some(entry("some code of a kernel")));
}

#[cfg(unix)]
#[test]
fn files_that_other_users_may_write_are_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new("mode");
    let disk = place.disk();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    assert_eq!(mode(&disk.directory), 0o700);
    disk.put(b"key", &entry("code")).unwrap();
    assert_eq!(mode(&disk.path(b"key")), 0o600);
    set(&disk.path(b"key"), 0o620).unwrap();
    assert_eq!(disk.get(b"key"), None);
    set(&disk.path(b"key"), 0o644).unwrap();
    assert!(disk.get(b"key").is_some());
    for bad in [0o770, 0o702, 0o777] {
        set(&disk.directory, bad).unwrap();
        let why = Disk::open(disk.directory.clone(), FORMAT).unwrap_err();
        assert!(why.contains("other users"), "{why}");
    }
    set(&disk.directory, 0o700).unwrap();
}

#[test]
fn the_oldest_files_go_first() {
    let place = Place::new("bound");
    let disk = Disk::bounded(place.0.join("kept"), FORMAT, 20_000).unwrap();
    let image = Entry { image: vec![7; 1000], names: vec![] };
    let now = SystemTime::now();
    for i in 0..40_u64 {
        let key = i.to_le_bytes();
        disk.put(&key, &image).unwrap();
        if let Ok(file) = File::options().write(true).open(disk.path(&key)) {
            file.set_modified(now - Duration::from_secs(1000 - i)).unwrap();
        }
    }
    disk.prune();
    let total: u64 =
        fs::read_dir(&disk.directory).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
    assert!((10_000..=20_000).contains(&total), "{total} bytes are left");
    assert!(disk.get(&0_u64.to_le_bytes()).is_none());
    assert!(disk.get(&39_u64.to_le_bytes()).is_some());
}

#[test]
fn a_place_that_cannot_be_written_is_said() {
    let place = Place::new("file");
    fs::create_dir_all(&place.0).unwrap();
    fs::write(place.0.join("kept"), "no directory").unwrap();
    assert!(Disk::open(place.0.join("kept"), FORMAT).is_err());
}
