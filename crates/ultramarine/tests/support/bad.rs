//! Plugins that misbehave on purpose: how each is made, and what the report must say of it.

use super::workshop::{Workshop, file_name};
use std::fs::Permissions;
use std::io::Result;
use std::os::unix::fs::{PermissionsExt, symlink};
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
    /// What it is called: its file's name, and the plugin's own.
    pub name: &'static str,
    /// How it is made.
    pub make: Make,
    /// The stage at which it must fall out, as the report spells it.
    pub stage: &'static str,
    /// What its reason must hold, each of these.
    pub reason: &'static [&'static str],
}

const fn bad(
    name: &'static str,
    make: Make,
    stage: &'static str,
    reason: &'static [&'static str],
) -> Bad {
    Bad { name, make, stage, reason }
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
const KILL: &str = "-DON_LOAD=__builtin_trap()";

/// Forty kinds that can be told apart without a child process: none crashes or hangs unless it
/// is opened although its note rules it out.
pub const FORTY: &[Bad] = &[
    // What stands at the path.
    bad("text", Make::Other(|_, p| std::fs::write(p, "no library\n")), "file", &["ELF"]),
    bad("empty", Make::Other(|_, p| std::fs::write(p, "")), "file", &["empty"]),
    bad("directory", Make::Other(|_, p| std::fs::create_dir(p)), "file", &["directory"]),
    bad("fifo", Make::Other(|_, p| fifo(p)), "file", &["regular file"]),
    bad("loop", Make::Other(|_, p| symlink(p, p)), "file", &["link"]),
    bad("dangling", Make::Other(|_, p| symlink("/nowhere/at/all.so", p)), "file", &["No such file"]),
    bad("everybodys", Make::Treated(|p| mode(p, 0o666)), "file", &["writ"]),
    // What its header and its note say.
    bad("stub", Make::Changed(|b| b.truncate(40)), "file", &["short"]),
    bad("cut", Make::Changed(|b| b.truncate(b.len() / 2)), "file", &["short"]),
    bad("machine", Make::Changed(|b| b[18] ^= 0xff), "file", &["machine"]),
    bad("bits32", Make::Changed(|b| b[4] = 1), "file", &["32-bit"]),
    bad("big_endian", Make::Changed(|b| b[5] = 2), "file", &["big-endian"]),
    bad("object", Make::Changed(|b| b[16] = 1), "file", &["shared library"]),
    bad("long_note", Make::Changed(|b| overlong_note(b)), "note", &["note"]),
    bad("unknown_feature", Make::C(&[KILL, "-DINFO=.cpu_features = \"sse2 avx9000\","]), "note", &["avx9000"]),
    bad("unknown_level", Make::C(&[KILL, "-DINFO=.cpu_features = \"x86-64-v9\","]), "note", &["x86-64-v9"]),
    bad("major", Make::C(&[KILL, "-DINFO=.abi_major = 99,"]), "note", &["99", "0."]),
    bad("dlpack", Make::C(&[KILL, "-DINFO=.dlpack_major = 7,"]), "note", &["DLPack", "7", "1"]),
    bad("pointers", Make::C(&[KILL, "-DINFO=.pointer_bits = 32,"]), "note", &["32", "64"]),
    bad("endianness", Make::C(&[KILL, "-DINFO=.endianness = 2,"]), "note", &["endian"]),
    bad("short_table", Make::C(&[KILL, "-DINFO=.table_size = 40,"]), "note", &["40", "216"]),
    bad("sanitised", Make::C(&[KILL, "-DINFO=.sanitizers = UM_SANITIZER_ADDRESS,"]), "note", &["AddressSanitizer"]),
    bad("other_name", Make::C(&["-DINFO=.name = \"somebody_else\","]), "note", &["somebody_else"]),
    // What the system's loader says.
    bad("undefined", Make::C(&["-DON_INIT=extern void nowhere(void); nowhere()"]), "open", &["nowhere"]),
    bad("dependency", Make::Other(|w, p| dependency(w, p)), "open", &["libgone_for_good.so"]),
    // Entry points.
    bad("no_entry", Make::C(&["-DNO_NOTE", "-DNO_INFO", "-DNO_SCORE", "-DNO_INIT"]), "open", &["ultramarine_backend_abi_info"]),
    bad("no_init", Make::C(&["-DNO_INIT"]), "open", &["ultramarine_backend_init"]),
    bad("info_fails", Make::C(&["-DON_INFO=return UM_ERROR"]), "abi", &["status 1"]),
    bad("info_differs", Make::C(&["-DON_INFO=mine.abi_major = 98"]), "abi", &["98"]),
    bad("no_note_major", Make::C(&["-DNO_NOTE", "-DINFO=.abi_major = 97,"]), "abi", &["97"]),
    bad("short_info", Make::C(&["-DNO_NOTE", "-DON_INFO=mine.size = 8"]), "abi", &["8"]),
    // Scores.
    bad("score_0", Make::C(&["-DON_SCORE=score->score = 0; strcpy(score->reason, \"no such chip\")"]), "score", &["no such chip"]),
    bad("score_mute", Make::C(&["-DON_SCORE=return score->score = 0, UM_OK"]), "score", &["no reason"]),
    bad("score_fails", Make::C(&["-DON_SCORE=return UM_ERROR"]), "score", &["status 1"]),
    bad("score_huge", Make::C(&["-DSCORE=4000000000u"]), "score", &["4000000000"]),
    // Initialisation.
    bad("init_told", Make::C(&["-DON_INIT=return complain(error, UM_ERROR, \"the fan is off\")"]), "init", &["the fan is off"]),
    bad("init_mute", Make::C(&["-DON_INIT=return UM_ERROR"]), "init", &["status 1"]),
    bad("no_devices", Make::C(&["-DON_COUNT=return 0"]), "devices", &["no device"]),
    bad("null_submit", Make::C(&["-DON_TABLE=mine.submit = NULL"]), "table", &["submit"]),
    bad("table_name", Make::C(&["-DON_TABLE=mine.name = \"impostor\""]), "table", &["impostor"]),
];

/// More that can be told without a child process.
pub const MORE: &[Bad] = &[
    bad("minor", Make::C(&[KILL, "-DINFO=.abi_minor = 9,"]), "note", &["0.9"]),
    bad("info_garbage", Make::C(&["-DNO_NOTE", "-DON_INFO=memset(&mine, 0xff, sizeof mine)"]), "abi", &[]),
    bad("status_77", Make::C(&["-DON_SCORE=return 77"]), "score", &["77"]),
    bad("count_huge", Make::C(&["-DON_SCORE=return score->device_count = 4000000000u, UM_OK"]), "score", &["4000000000"]),
    bad("init_77", Make::C(&["-DON_INIT=return 77"]), "init", &["77"]),
    bad("table_empty", Make::C(&["-DON_INIT=return UM_OK"]), "table", &["size"]),
    bad("table_major", Make::C(&["-DON_TABLE=mine.abi_major = 96"]), "table", &["96"]),
    bad("table_type", Make::C(&["-DON_TABLE=mine.device_type = 7"]), "table", &["7"]),
    bad("table_null_name", Make::C(&["-DON_TABLE=mine.name = NULL"]), "table", &["name"]),
    bad("null_count", Make::C(&["-DON_TABLE=mine.device_count = NULL"]), "table", &["device_count"]),
    bad("null_free", Make::C(&["-DON_TABLE=mine.buffer_free = NULL"]), "table", &["buffer_free"]),
    bad("devices_huge", Make::C(&["-DON_COUNT=return 4000000000u"]), "devices", &["4000000000"]),
    bad("device_fails", Make::C(&["-DON_DEVICE=return complain(error, UM_ERROR, \"it is asleep\")"]), "devices", &["it is asleep"]),
    bad("open_fails", Make::C(&["-DON_OPEN=return complain(error, UM_ERROR, \"it is locked\")"]), "devices", &["it is locked"]),
];

/// Those that only a child process survives.
pub const DEADLY: &[Bad] = &[
    bad("crash_load", Make::C(&[KILL]), "probe", &["signal"]),
    bad("hang_load", Make::C(&["-DON_LOAD=for (;;) sched_yield()"]), "probe", &["time"]),
    bad("crash_info", Make::C(&["-DON_INFO=abort()"]), "probe", &["signal"]),
    bad("crash_score", Make::C(&["-DON_SCORE=*(volatile int *)0 = 1"]), "probe", &["signal"]),
    bad("hang_score", Make::C(&["-DON_SCORE=for (;;) sched_yield()"]), "probe", &["time"]),
    bad("crash_init", Make::C(&["-DON_INIT=__builtin_trap()"]), "probe", &["signal"]),
    bad("hang_init", Make::C(&["-DON_INIT=for (;;) sched_yield()"]), "probe", &["time"]),
    bad("exit_init", Make::C(&["-DON_INIT=exit(0)"]), "probe", &["exit"]),
];

fn mode(path: &Path, mode: u32) -> Result<()> {
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

fn fifo(path: &Path) -> Result<()> {
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
