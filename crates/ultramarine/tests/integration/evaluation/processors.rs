//! The number of threads counts what a process may use, not what the machine has: affinity and control groups.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread::available_parallelism;
use ultramarine::pool::threads;

const REQUESTED: &str = "ULTRAMARINE_NUM_THREADS";

/// Prints the number of threads: run by [`threads_under`] in processes with limits.
#[test]
#[ignore = "run by other tests"]
fn prints_its_threads() {
    eprintln!("threads: {}.", threads());
}

/// The number of threads of a process that a program starts; none, with a line that says so, where that cannot be run.
fn threads_under<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> Option<usize> {
    let module = module_path!().split_once("::").map_or("", |(_, inside)| inside);
    let test = format!("{module}::prints_its_threads");
    let mut command = Command::new(program);
    command.args(arguments).arg(std::env::current_exe().expect("the test's own program"));
    command.args([&test, "--exact", "--ignored", "--nocapture"]).env_remove(REQUESTED);
    let Ok(output) = command.output() else {
        eprintln!("skipped: {program} cannot be run");
        return None;
    };
    let printed = String::from_utf8_lossy(&output.stderr);
    let number = printed.split_once("threads: ").and_then(|(_, rest)| rest.split_once('.'));
    let (number, _) = number.unwrap_or_else(|| panic!("{program}: {printed}"));
    Some(number.parse().expect("a number"))
}

/// The first processor that this process may use.
fn first_processor() -> String {
    let status = fs::read_to_string("/proc/self/status").expect("Linux says it");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let list = list.expect("Linux says it").trim();
    list.split([',', '-']).next().expect("there is one").to_owned()
}

#[test]
fn threads_are_those_that_affinity_allows() {
    if let Some(found) = threads_under("taskset", &["-c", &first_processor()]) {
        assert_eq!(found, 1);
    }
}

/// A control group of this test's own, removed at the end.
struct Group(PathBuf);

impl Group {
    /// A group below one of the places where Linux usually shows them, of either version, with one processor's time. None where
    /// this process may not make one.
    fn of_one_processor() -> Option<Group> {
        for (place, limit) in [
            ("/sys/fs/cgroup", ("cpu.max", "100000 100000")),
            ("/sys/fs/cgroup/cpu", ("cpu.cfs_quota_us", "100000")),
        ] {
            let folder = PathBuf::from(place).join(format!("ultramarine-{}", std::process::id()));
            // A plain folder, where no groups are, takes new files, too.
            if !PathBuf::from(place).join("cgroup.procs").exists()
                || fs::create_dir(&folder).is_err()
            {
                continue;
            }
            let group = Group(folder);
            if group.0.join(limit.0).exists() && fs::write(group.0.join(limit.0), limit.1).is_ok() {
                return Some(group);
            }
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn threads_are_those_that_a_control_group_allows() {
    let Some(group) = Group::of_one_processor() else {
        eprintln!("skipped: this process may make no control group");
        return;
    };
    let enter = r#"echo $$ > "$0/cgroup.procs" && exec "$@""#;
    let arguments = [OsStr::new("-c"), OsStr::new(enter), group.0.as_os_str()];
    if let Some(found) = threads_under("sh", &arguments) {
        assert_eq!(found, 1);
    }
}

#[test]
fn without_limits_threads_are_all_processors() {
    if let Some(found) = threads_under("env", &["--"]) {
        assert_eq!(found, available_parallelism().map_or(1, usize::from));
    }
}
