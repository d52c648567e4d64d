//! Validation of files before they are opened: owners, permissions, kinds.

use super::backends::{self, LoadOptions, Outcome};
use super::bench::{Bench, load_all, reported, why};
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use ultramarine_test_support::own_process;

fn mode(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).expect("our own file");
}

fn is_root() -> bool {
    // SAFETY: no preconditions.
    unsafe { libc::geteuid() == 0 }
}

/// Gives a file to somebody else, which only root can.
fn give_away(path: &Path) {
    std::os::unix::fs::chown(path, Some(12345), None).expect("root may");
}

/// Files and directories that everybody may write to, on any way that leads there.
#[test]
fn everybody() {
    own_process!();
    let bench = Bench::new("permissions-everybody");
    let kill = &["-DON_LOAD=__builtin_trap()"];
    let file = bench.plugin("fine", "file", kill);
    mode(&file, 0o646);
    let inside = bench.plugin("open", "inside", kill);
    mode(&bench.dir("open"), 0o777);
    let sticky = bench.plugin("sticky", "sticky", kill);
    mode(&bench.dir("sticky"), 0o1777);
    let below = bench.plugin("above/below", "below", kill);
    mode(&bench.dir("above"), 0o777);
    let target = bench.plugin("open", "target", kill);
    let link = bench.dir("fine").join("libultramarine-link.so");
    symlink(&target, &link).expect("a link");
    bench.search(&["fine", "open", "sticky", "above/below"]);
    assert!(load_all(LoadOptions::default()).is_empty());
    assert_eq!(why(&file), ("file".into(), "writable_file".into(), why(&file).2));
    for path in [&inside, &sticky, &below, &link] {
        assert_eq!(why(path).1, "writable_directory", "{}", path.display());
        assert_eq!(reported(path).outcome, Outcome::Rejected);
    }
    assert!(why(&sticky).2.contains("1777"));
    assert!(why(&below).2.contains("above") && !why(&below).2.contains("above/below"));
    // An explicit load is no way round.
    for path in [&file, &sticky, &link] {
        let error = backends::load(path).expect_err("unsafe").to_string();
        assert!(error.contains(&why(path).2), "{error}");
    }
}

/// A sticky directory further up is as good as any: what is in it cannot be replaced.
#[test]
fn below_a_sticky_directory() {
    own_process!();
    let bench = Bench::new("permissions-sticky");
    bench.plugin("tmp/mine", "safe", &[]);
    mode(&bench.dir("tmp"), 0o1777);
    bench.search(&["tmp/mine"]);
    assert_eq!(load_all(LoadOptions::default()), ["safe"]);
}

/// Owned by somebody else: only if asked for by path.
#[test]
fn owner() {
    own_process!();
    if !is_root() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    let bench = Bench::new("permissions-owner");
    let path = bench.plugin("all", "foreign", &[]);
    give_away(&path);
    bench.search(&["all"]);
    assert!(load_all(LoadOptions::default()).is_empty());
    assert_eq!(why(&path).1, "owner");
    assert!(why(&path).2.contains("12345"));
    assert_eq!(backends::load(&path).expect("the user's own word").name, "foreign");
    assert_eq!(reported(&path).outcome, Outcome::Loaded);
}

/// Candidates that are no regular files.
#[test]
fn kinds() {
    own_process!();
    let bench = Bench::new("permissions-kinds");
    let dir = bench.dir("all");
    let path = |name: &str| dir.join(format!("libultramarine-{name}.so"));
    std::fs::create_dir(path("directory")).expect("a directory");
    let fifo = std::ffi::CString::new(path("pipe").to_string_lossy().as_bytes()).expect("a path");
    // SAFETY: a NUL-terminated path.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o644) }, 0);
    symlink(path("loop_b"), path("loop_a")).expect("a link");
    symlink(path("loop_a"), path("loop_b")).expect("a link");
    symlink(dir.join("gone"), path("dangling")).expect("a link");
    symlink("/dev/null", path("device")).expect("a link");
    bench.search(&["all"]);
    assert!(load_all(LoadOptions::default()).is_empty());
    let code = |name: &str| why(path(name)).1;
    assert_eq!(code("directory"), "not_regular");
    assert_eq!(code("pipe"), "not_regular");
    assert_eq!(code("device"), "not_regular");
    assert_eq!((code("loop_a"), code("loop_b")), ("link_loop".into(), "link_loop".into()));
    assert_eq!(code("dangling"), "missing");
}

/// One file under several names, by links of both kinds, counts once, also later on.
#[test]
fn one_file_under_two_names() {
    own_process!();
    let bench = Bench::new("permissions-twice");
    let real = bench.plugin("all", "twin", &[]);
    let dir = bench.dir("also");
    let soft = dir.join("libultramarine-twin.so");
    symlink(&real, &soft).expect("a link");
    let hard = dir.join("libultramarine-alias.so");
    std::fs::hard_link(&real, &hard).expect("a link");
    // The name that is not the plugin's own comes first, and must not hide the right one.
    bench.search(&["also", "all"]);
    assert_eq!(load_all(LoadOptions::default()), ["twin"]);
    assert_eq!(why(&hard).1, "name_differs");
    assert_eq!(reported(&soft).outcome, Outcome::Loaded);
    assert_eq!(why(&real).1, "same_file");
    let again = backends::load(&real).expect("it is loaded");
    assert_eq!(again.path.as_deref(), Some(soft.as_path()));
    assert_eq!(backends::backends().len(), 2);
}

/// With more rights than the user has, the environment does not say where plugins are.
#[test]
fn elevated() {
    own_process!();
    if !is_root() {
        eprintln!("skipped: only root can make a program that runs as somebody else");
        return;
    }
    let bench = Bench::new("permissions-elevated");
    let program = bench.dir("bin").join("elevated");
    std::fs::copy(std::env::current_exe().expect("this program"), &program).expect("a copy");
    give_away(&program);
    mode(&program, 0o4755);
    let run = |program: &Path| {
        let out = std::process::Command::new(program)
            .args(["loader::search_paths_of_this_process", "--ignored", "--exact"])
            .arg("--nocapture")
            .arg("--test-threads=1")
            .env("ULTRAMARINE_BACKEND_PATH", "/chosen/by/the/environment")
            .current_dir("/")
            .output()
            .expect("it runs");
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    let plain = run(&std::env::current_exe().expect("this program"));
    assert!(plain.contains("searched: /chosen/by/the/environment"), "{plain}");
    let elevated = run(&program);
    if elevated.contains("not elevated") {
        eprintln!("skipped: this file system ignores the bit");
        return;
    }
    assert!(elevated.contains("searched: "), "{elevated}");
    assert!(!elevated.contains("/chosen/by"), "{elevated}");
}
