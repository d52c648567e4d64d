//! Plugins that misbehave on purpose: how each is made, and what the report must say of it.

use super::workshop::{Workshop, file_name};
use std::io::Result;
use std::path::Path;

/// How a candidate comes to be.
pub enum Make {
    /// `plugin.c`, under the kind's own name, with these definitions.
    C(&'static [&'static str]),
    /// A plugin that behaves, with bytes of its file changed.
    Changed(fn(&mut Vec<u8>)),
    /// A plugin that behaves, which is then done something to.
    Treated(fn(&Path) -> Result<()>),
    /// Something else at the path.
    Other(fn(&Workshop, &Path) -> Result<()>),
}

/// One kind of bad candidate.
pub struct Bad {
    /// Its name: that of the file, and the plugin's own.
    pub name: &'static str,
    /// How it is made.
    pub make: Make,
    /// The kind of reason for which it must be left out, as the report spells it.
    pub code: &'static str,
    /// Texts that its reason must hold.
    pub reason: &'static [&'static str],
}

const fn bad(
    name: &'static str,
    make: Make,
    code: &'static str,
    reason: &'static [&'static str],
) -> Bad {
    Bad { name, make, code, reason }
}

impl Bad {
    /// Makes it in a directory.
    pub fn make(&self, workshop: &Workshop, directory: &Path) -> Result<()> {
        let path = directory.join(file_name(self.name));
        match self.make {
            Make::C(flags) => workshop.good(self.name, flags, directory).map(drop),
            Make::Changed(change) => {
                workshop.good(self.name, &[], directory)?;
                let mut bytes = std::fs::read(&path)?;
                change(&mut bytes);
                std::fs::write(&path, bytes)
            }
            Make::Treated(treat) => {
                workshop.good(self.name, &[], directory)?;
                treat(&path)
            }
            Make::Other(make) => make(workshop, &path),
        }
    }
}

/// Makes all of a list, some at a time.
pub fn make_all(kinds: &[Bad], workshop: &Workshop, directory: &Path) -> Result<()> {
    std::thread::scope(|scope| {
        let parts = kinds.chunks(kinds.len().div_ceil(4).max(1));
        let makers: Vec<_> = parts
            .map(|part| {
                scope.spawn(|| part.iter().try_for_each(|kind| kind.make(workshop, directory)))
            })
            .collect();
        makers.into_iter().try_for_each(|maker| maker.join().expect("a maker panicked"))
    })
}

/// Ends the process at once where its code runs: what the loader must not let happen.
pub const KILL: &str = "-DON_LOAD=__builtin_trap()";

/// Forty kinds that can be told apart without a child process: none crashes or hangs unless it
/// is opened although its note rules it out.
pub const FORTY: &[Bad] = &[
    // What stands at the path.
    bad("text", Make::Other(|_, p| std::fs::write(p, "no library\n")), "not_a_library", &[]),
    bad("empty", Make::Other(|_, p| std::fs::write(p, "")), "not_a_library", &["empty"]),
    bad("directory", Make::Other(|_, p| std::fs::create_dir(p)), "not_regular", &["directory"]),
    bad("pipe", Make::Other(|_, p| pipe(p)), "not_regular", &["pipe"]),
    bad("loop", Make::Other(|_, p| symlink(p, p)), "link_loop", &["circle"]),
    bad("dangling", Make::Other(|_, p| symlink("/nowhere/at/all.so", p)), "missing", &["link"]),
    bad("everybodys", Make::Treated(|p| mode(p, 0o666)), "writable_file", &["all users", "666"]),
    bad("UpperCase", Make::C(&[]), "file_name", &["UpperCase"]),
    // What its header and its note say.
    bad("stub", Make::Changed(|b| b.truncate(40)), "cut_short", &["header"]),
    bad("cut", Make::Changed(|b| b.truncate(b.len() / 2)), "cut_short", &[]),
    bad("machine", Make::Changed(|b| b[18] ^= 0xff), "machine", &[]),
    bad("bits32", Make::Changed(|b| b[4] = 1), "machine", &["32"]),
    bad("big_endian", Make::Changed(|b| b[5] = 2), "machine", &["endian"]),
    bad("object", Make::Changed(|b| b[16] = 1), "not_a_library", &["not a shared library"]),
    bad("long_note", Make::Changed(|b| overlong_note(b)), "note_damaged", &[]),
    bad(
        "unknown_feature",
        Make::C(&[KILL, "-DINFO=.cpu_features = \"avx9000\","]),
        "unknown_cpu_feature",
        &["avx9000"],
    ),
    bad("major", Make::C(&[KILL, "-DINFO=.abi_major = 99,"]), "abi_version", &["99", "0."]),
    bad("minor", Make::C(&[KILL, "-DINFO=.abi_minor = 98,"]), "abi_version", &["0.98", "0."]),
    bad("dlpack", Make::C(&[KILL, "-DINFO=.dlpack_major = 7,"]), "dlpack_version", &["7.", "1."]),
    bad("pointers", Make::C(&[KILL, "-DINFO=.pointer_bits = 32,"]), "pointer_width", &["32", "64"]),
    bad(
        "endianness",
        Make::C(&[KILL, "-DINFO=.endianness = 2,"]),
        "endianness",
        &["big", "little"],
    ),
    bad("short_table", Make::C(&[KILL, "-DINFO=.table_size = 40,"]), "table_short", &["40", TABLE]),
    bad(
        "sanitised",
        Make::C(&[KILL, "-DINFO=.sanitizers = UM_SANITIZER_ADDRESS,"]),
        "sanitizer",
        &["AddressSanitizer"],
    ),
    bad(
        "other_name",
        Make::C(&[KILL, "-DINFO=.name = \"somebody_else\","]),
        "name_differs",
        &["somebody_else", "other_name"],
    ),
    // What the system's loader says.
    bad(
        "undefined",
        Make::C(&["-DON_INIT=extern void nowhere(void); nowhere()"]),
        "open_failed",
        &["nowhere"],
    ),
    bad("dependency", Make::Other(dependency), "open_failed", &["libgone_for_good.so"]),
    // Entry points.
    bad(
        "no_entry",
        Make::C(&["-DNO_NOTE", "-DNO_INFO", "-DNO_SCORE", "-DNO_INIT"]),
        "no_entry_point",
        &["ultramarine_backend_abi_info"],
    ),
    bad("no_init", Make::C(&["-DNO_INIT"]), "no_entry_point", &["ultramarine_backend_init"]),
    bad("info_fails", Make::C(&["-DON_INFO=return UM_ERROR"]), "info_garbage", &["status 1"]),
    bad("info_differs", Make::C(&["-DON_INFO=mine.abi_minor++"]), "note_differs", &[]),
    bad(
        "late_major",
        Make::C(&["-DNO_NOTE", "-DINFO=.abi_major = 97,"]),
        "abi_version",
        &["97", "0."],
    ),
    bad("short_info", Make::C(&["-DNO_NOTE", "-DON_INFO=mine.size = 8"]), "info_short", &["8"]),
    // Scores.
    bad(
        "score_0",
        Make::C(&["-DON_SCORE=score->score = 0; strcpy(score->reason, \"no such chip\")"]),
        "score_zero",
        &["no such chip"],
    ),
    bad("score_mute", Make::C(&["-DSCORE=0"]), "score_zero", &[]),
    bad("score_huge", Make::C(&["-DSCORE=4000000000u"]), "score_garbage", &["4000000000"]),
    // Initialisation.
    bad(
        "init_told",
        Make::C(&["-DON_INIT=return complain(error, UM_ERROR, \"the fan is off\")"]),
        "init_failed",
        &["the fan is off"],
    ),
    bad("init_mute", Make::C(&["-DON_INIT=return UM_ERROR"]), "init_failed", &["1"]),
    bad("no_devices", Make::C(&["-DON_COUNT=return 0"]), "no_devices", &[]),
    bad("null_submit", Make::C(&["-DON_TABLE=mine.submit = NULL"]), "table_differs", &["submit"]),
    bad(
        "table_name",
        Make::C(&["-DON_TABLE=mine.name = \"impostor\""]),
        "table_differs",
        &["impostor", "table_name"],
    ),
];

/// The size of a whole table, as texts have it.
const TABLE: &str = "216";

/// More that can be told without a child process.
pub const MORE: &[Bad] = &[
    bad(
        "level",
        Make::C(&[KILL, "-DINFO=.cpu_features = \"x86-64-v9\","]),
        "unknown_cpu_feature",
        &["x86-64-v9"],
    ),
    bad("bad_variant", Make::C(&[KILL, "-DINFO=.variant = \"a/b\","]), "bad_name", &["a/b"]),
    bad("device_type", Make::C(&[KILL, "-DINFO=.device_type = -3,"]), "device_type", &["-3"]),
    bad(
        "info_0xff",
        Make::C(&["-DNO_NOTE", "-DON_INFO=memset(&mine, 0xff, sizeof mine)"]),
        "info_garbage",
        &["4294967295"],
    ),
    bad(
        "info_overrun",
        Make::C(&["-DON_INFO=memset(info, 1, 2 * room)"]),
        "info_garbage",
        &["beyond"],
    ),
    bad(
        "score_overrun",
        Make::C(&["-DON_SCORE=memset(score, 1, 2 * score->size); return UM_OK"]),
        "score_garbage",
        &["beyond"],
    ),
    bad("score_fails", Make::C(&["-DON_SCORE=return UM_ERROR"]), "score_zero", &["status 1"]),
    bad("score_77", Make::C(&["-DON_SCORE=return 77"]), "score_zero", &["77"]),
    bad("score_minus", Make::C(&["-DSCORE=-1"]), "score_garbage", &["4294967295"]),
    bad(
        "score_count",
        Make::C(&["-DON_SCORE=return score->device_count = 4000000000u, UM_OK"]),
        "score_garbage",
        &["4000000000"],
    ),
    bad("init_77", Make::C(&["-DON_INIT=return 77"]), "init_failed", &["77"]),
    bad(
        "init_empty",
        Make::C(&["-DON_INIT=return complain(error, UM_ERROR, \"\")"]),
        "init_failed",
        &["1"],
    ),
    bad("table_none", Make::C(&["-DON_INIT=return UM_OK"]), "table_differs", &[]),
    bad("table_short", Make::C(&["-DON_TABLE=mine.size = 40"]), "table_differs", &["40", TABLE]),
    bad("table_long", Make::C(&["-DON_TABLE=mine.size = 5000"]), "table_differs", &["5000", TABLE]),
    bad(
        "table_overrun",
        Make::C(&["-DON_TABLE=memset(table, 0, 2 * room)"]),
        "table_differs",
        &["beyond"],
    ),
    bad("table_major", Make::C(&["-DON_TABLE=mine.abi_major = 96"]), "table_differs", &["96"]),
    bad("table_type", Make::C(&["-DON_TABLE=mine.device_type = 7"]), "table_differs", &["7", "2"]),
    bad("null_name", Make::C(&["-DON_TABLE=mine.name = NULL"]), "table_differs", &["name"]),
    bad(
        "null_count",
        Make::C(&["-DON_TABLE=mine.device_count = NULL"]),
        "table_differs",
        &["device_count"],
    ),
    bad(
        "null_free",
        Make::C(&["-DON_TABLE=mine.buffer_free = NULL"]),
        "table_differs",
        &["buffer_free"],
    ),
    bad(
        "devices_huge",
        Make::C(&["-DON_COUNT=return 4000000000u"]),
        "table_differs",
        &["4000000000"],
    ),
    bad(
        "device_fails",
        Make::C(&["-DON_DEVICE=return complain(error, UM_ERROR, \"it is asleep\")"]),
        "init_failed",
        &["it is asleep"],
    ),
    bad(
        "device_overrun",
        Make::C(&["-DON_DEVICE=memset(info, 0, 2 * sizeof *info)"]),
        "table_differs",
        &["device_info", "beyond"],
    ),
    bad(
        "open_fails",
        Make::C(&["-DON_OPEN=return complain(error, UM_ERROR, \"it is locked\")"]),
        "init_failed",
        &["it is locked"],
    ),
];

/// Those that only a child process survives.
pub const DEADLY: &[Bad] = &[
    bad("crash_load", Make::C(&[KILL]), "probe_crashed", &["signal"]),
    bad("hang_load", Make::C(&["-DON_LOAD=for (;;) sched_yield()"]), "probe_hung", &[]),
    bad("crash_info", Make::C(&["-DON_INFO=abort()"]), "probe_crashed", &["signal"]),
    bad(
        "crash_score",
        Make::C(&["-DON_SCORE=*(volatile int *)0 = 1"]),
        "probe_crashed",
        &["signal"],
    ),
    bad("hang_score", Make::C(&["-DON_SCORE=for (;;) sched_yield()"]), "probe_hung", &[]),
    bad("crash_init", Make::C(&["-DON_INIT=__builtin_trap()"]), "probe_crashed", &["signal"]),
    bad("hang_init", Make::C(&["-DON_INIT=for (;;) sched_yield()"]), "probe_hung", &[]),
    bad("exit_init", Make::C(&["-DON_INIT=exit(0)"]), "probe_crashed", &["exit"]),
];

#[cfg(unix)]
fn mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn mode(_: &Path, _: u32) -> Result<()> {
    Err(std::io::Error::other("this system has no permissions of that kind"))
}

#[cfg(unix)]
use std::os::unix::fs::symlink;

#[cfg(not(unix))]
fn symlink(_: impl AsRef<Path>, _: impl AsRef<Path>) -> Result<()> {
    Err(std::io::Error::other("links are left to users here"))
}

fn pipe(path: &Path) -> Result<()> {
    let made = std::process::Command::new("mkfifo").arg(path).status()?;
    if made.success() { Ok(()) } else { Err(std::io::Error::other("mkfifo failed")) }
}

/// A plugin linked with a library that is there no more.
fn dependency(workshop: &Workshop, path: &Path) -> Result<()> {
    let beside = path.with_extension("deps");
    std::fs::create_dir_all(&beside)?;
    workshop.c(&["-Wl,-soname,libgone_for_good.so"], &beside.join("libgone_for_good.so"))?;
    let place = format!("-L{}", beside.display());
    let flags = ["-DNAME=\"dependency\"", &place, "-Wl,--no-as-needed", "-lgone_for_good"];
    workshop.c(&flags, path)?;
    std::fs::remove_dir_all(&beside)
}

/// Makes the note's description end far beyond its segment.
fn overlong_note(bytes: &mut [u8]) {
    let owner = b"Ultramarine\0";
    if let Some(at) = bytes.windows(owner.len()).position(|w| w == owner)
        && let Some(size) = at.checked_sub(8).and_then(|from| bytes.get_mut(from..from + 4))
    {
        size.copy_from_slice(&0xffff_fff0u32.to_le_bytes());
    }
}
