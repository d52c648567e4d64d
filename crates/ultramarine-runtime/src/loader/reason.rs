//! The reasons why candidates are left out: one row per reason, with its log level and remedy. The level is `Warning` where
//! something is wrong with the file or its place, and `Info` where it is right and not for this machine or this call.

use crate::log::Level;
use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident $name:literal $level:ident $remedy:literal;)*) => {
        /// The kind of a reason.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $code,)*
        }

        impl Code {
            /// Its name in the JSON report.
            pub fn name(self) -> &'static str {
                match self { $(Code::$code => $name,)* }
            }

            /// The code of a name.
            pub(super) fn named(name: &str) -> Option<Code> {
                match name { $($name => Some(Code::$code),)* _ => None }
            }

            pub(super) fn level(self) -> Level {
                match self { $(Code::$code => Level::$level,)* }
            }

            fn remedy(self) -> &'static str {
                match self { $(Code::$code => $remedy,)* }
            }
        }
    };
}

codes! {
    /// There is no such file, or a link leads nowhere.
    Missing "missing" Warning "check the path, or remove the link";
    /// The file cannot be opened or read.
    Unreadable "unreadable" Warning "make the file readable for this user";
    /// Links that lead in a circle.
    LinkLoop "link_loop" Warning "remove the link";
    /// A directory, a pipe, a device ...
    NotRegular "not_regular" Warning "put the library itself there";
    /// Not named as backends are.
    FileName "file_name" Warning
        "name it libultramarine-NAME[-VARIANT] with the system's ending for libraries; NAME has lower-case letters, digits and _";
    /// Everybody may write to the file.
    WritableFile "writable_file" Warning "chmod o-w on the file";
    /// Everybody may write to a directory above the file.
    WritableDirectory "writable_directory" Warning
        "move the file into a directory that only its owner can write to, or chmod o-w on that directory";
    /// Owned by neither root nor the user.
    Owner "owner" Warning
        "chown the file to root or to this user, or load it by its path";
    /// Not a shared library of this system.
    NotALibrary "not_a_library" Warning
        "put the shared library there that a compiler makes with -shared -fPIC on this system";
    /// The file is shorter than its headers say.
    CutShort "cut_short" Warning "copy or install the file again";
    /// Built for other processors.
    Machine "machine" Info "install the build for this machine";
    /// The note is not what it should be.
    NoteDamaged "note_damaged" Warning "rebuild it with the contract's header";
    /// Declared under another name than the file's.
    NameDiffers "name_differs" Warning "rename the file, or correct the name in UM_DEFINE_BACKEND";
    /// Versions of the contract that do not go together.
    AbiVersion "abi_version" Warning "install the build of the backend for this version of ultramarine";
    /// Major versions of DLPack differ.
    DlpackVersion "dlpack_version" Warning "rebuild it with the dlpack.h that stands beside backend.h";
    /// Pointers of another width.
    PointerWidth "pointer_width" Info "install the build for this machine";
    /// Another order of bytes.
    Endianness "endianness" Info "install the build for this machine";
    /// Its function table is too short.
    TableShort "table_short" Warning "rebuild it with the present backend.h";
    /// Its ABI info is too short.
    InfoShort "info_short" Warning "rebuild it with the present backend.h";
    /// Built with a sanitizer that this process does not run.
    Sanitizer "sanitizer" Warning "install a build without it, or start the program with that sanitizer";
    /// A device type that is none.
    DeviceType "device_type" Warning "give UM_DEFINE_BACKEND one of DLPack's device types";
    /// A name or variant with characters that it may not have.
    BadName "bad_name" Warning "correct name and variant in UM_DEFINE_BACKEND";
    /// The processor lacks something.
    CpuFeature "cpu_feature" Info "install a variant that asks for less";
    /// A processor feature that is unknown here.
    UnknownCpuFeature "unknown_cpu_feature" Warning
        "spell it as compilers for this processor do; a newer ultramarine may know it";
    /// Not among the allowed.
    NotAllowed "not_allowed" Info "add its name to `allowed`";
    /// Blocked by the caller.
    Blocked "blocked" Info "take its pattern from `blocked`";
    /// The same file under another name.
    SameFile "same_file" Info "nothing to do; one of the two names can go";
    /// A backend of that name is loaded.
    NameTaken "name_taken" Info "start the program afresh to load the other one";
    /// The system's loader refused.
    OpenFailed "open_failed" Warning "run ldd on the file to see what it misses";
    /// An entry point is missing.
    NoEntryPoint "no_entry_point" Warning
        "define the entry points of backend.h and include the header, which exports them; in C++ within extern \"C\"";
    /// The ABI info cannot be had, or is garbage.
    InfoGarbage "info_garbage" Warning "fill no more than the size that the host sets";
    /// The ABI info is not the one in the note.
    NoteDiffers "note_differs" Warning "make note and entry point of one constant";
    /// It says that it cannot run here.
    ScoreZero "score_zero" Info "nothing to do where this machine lacks what it asks for";
    /// Its score cannot be meant.
    ScoreGarbage "score_garbage" Warning "return a score up to 10000, and no more devices than there are";
    /// The filter said no.
    Filtered "filtered" Info "let the filter accept it";
    /// The filter failed.
    FilterFailed "filter_failed" Warning "correct the filter";
    /// Another of its name is better.
    Outscored "outscored" Info "block the better one by name-variant, or load this one by its path";
    /// Its init failed.
    InitFailed "init_failed" Warning "see its message; check its driver, and what it needs besides";
    /// Its table is not what it promised.
    TableDiffers "table_differs" Warning "let ultramarine_backend_init fill in the name, device type and version that UM_DEFINE_BACKEND says";
    /// It has no devices.
    NoDevices "no_devices" Info "nothing to do where there is no such device; else check its driver";
    /// Its devices are served by a backend with a higher score.
    Duplicate "duplicate" Info "load with duplicates to have them under both";
    /// It crashed in a probe.
    ProbeCrashed "probe_crashed" Warning "report it to the backend's authors";
    /// It did not answer a probe in time.
    ProbeHung "probe_hung" Warning "report it to the backend's authors";
    /// The probe itself did not work.
    ProbeFailed "probe_failed" Warning "set ULTRAMARINE_PROBE to the path of the program ultramarine-probe";
}

/// The reason why a candidate was left out, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Its kind.
    pub code: Code,
    /// The problem, with the values.
    pub text: String,
    /// The remedy.
    pub remedy: String,
}

impl Reason {
    pub(super) fn new(code: Code, text: impl Into<String>) -> Reason {
        Reason { code, text: text.into(), remedy: code.remedy().to_owned() }
    }

    pub(super) fn with_remedy(mut self, remedy: impl Into<String>) -> Reason {
        self.remedy = remedy.into();
        self
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (remedy: {})", self.text, self.remedy)
    }
}
