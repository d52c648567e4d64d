//! The reasons why candidates are left out: one row per reason, with its log level and remedy. The level is `Warning` where
//! something is wrong with the file or its place, and `Info` where it is right and not for this machine or this call.

use crate::log::Level;
use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident $name:literal $level:ident $remedy:literal;)*) => {
        /// The kind of a [`Reason`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $code,)*
        }

        impl Code {
            /// Returns its name in the JSON report.
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
    LinkLoop "link_loop" Warning "remove the link, or point it to the library";
    /// A directory, a pipe, a device ...
    NotRegular "not_regular" Warning "put the library itself at this path";
    /// Not named as backends are.
    FileName "file_name" Warning
        "name it libultramarine-NAME[-VARIANT] with the system's extension for libraries; NAME has lower-case letters, digits and _";
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
        "put a shared library at this path, built with -shared -fPIC on this system";
    /// The file is shorter than its headers say.
    CutShort "cut_short" Warning "copy or install the file again";
    /// Built for other processors.
    Machine "machine" Info "install the build for this machine";
    /// The note is not what it should be.
    NoteDamaged "note_damaged" Warning "rebuild it with the installed backend.h";
    /// Declared under another name than the file's.
    NameDiffers "name_differs" Warning "rename the file, or correct the name in UM_DEFINE_BACKEND";
    /// Versions of the contract that do not go together.
    AbiVersion "abi_version" Warning "install the build of the backend for this version of ultramarine, or rebuild it with the installed headers";
    /// Major versions of DLPack differ.
    DlpackVersion "dlpack_version" Warning "rebuild it with the dlpack.h next to the installed backend.h";
    /// Pointers of another width.
    PointerWidth "pointer_width" Info "install the build for this machine";
    /// Another order of bytes.
    Endianness "endianness" Info "install the build for this machine";
    /// Its function table is too short.
    TableShort "table_short" Warning "rebuild it with the installed backend.h";
    /// Its ABI info is too short.
    InfoShort "info_short" Warning "rebuild it with the installed backend.h";
    /// Built with a sanitizer that this process does not run.
    Sanitizer "sanitizer" Warning "install a build without a sanitizer, or run the program under the same one";
    /// A device type that is none.
    DeviceType "device_type" Warning "pass one of DLPack's device types to UM_DEFINE_BACKEND";
    /// A name or variant with characters that it may not have.
    BadName "bad_name" Warning "correct name and variant in UM_DEFINE_BACKEND";
    /// The processor lacks something.
    CpuFeature "cpu_feature" Info "install a variant for older processors";
    /// A processor feature that is unknown here.
    UnknownCpuFeature "unknown_cpu_feature" Warning
        "use the compiler's name for the feature, or update ultramarine";
    /// Not among the allowed.
    NotAllowed "not_allowed" Info "add its name to `allowed`";
    /// Blocked by the caller.
    Blocked "blocked" Info "remove the pattern from `blocked`";
    /// The same file under another name.
    SameFile "same_file" Info "none needed; one of the two files can be removed";
    /// A backend of that name is loaded.
    NameTaken "name_taken" Info "restart the program to load the other one";
    /// The system's loader refused.
    OpenFailed "open_failed" Warning "run ldd on the file to find missing libraries";
    /// An entry point is missing.
    NoEntryPoint "no_entry_point" Warning
        "define the entry points of backend.h and include the header, which exports them; in C++ within extern \"C\"";
    /// The ABI info cannot be had, or is garbage.
    InfoGarbage "info_garbage" Warning "fill no more than the size that the host sets";
    /// The ABI info is not the one in the note.
    NoteDiffers "note_differs" Warning "build the note and the entry point from the same constant, as UM_DEFINE_BACKEND does";
    /// It says that it cannot run here.
    ScoreZero "score_zero" Info "none needed if this machine lacks the device";
    /// Its score cannot be meant.
    ScoreGarbage "score_garbage" Warning "return a score up to 10000, and no more devices than there are";
    /// The filter said no.
    Filtered "filtered" Info "return true for it from the filter";
    /// The filter failed.
    FilterFailed "filter_failed" Warning "fix the error in the filter";
    /// Another of its name is better.
    Outscored "outscored" Info "block the other one by NAME-VARIANT, or load this one by its path";
    /// Its init failed.
    InitFailed "init_failed" Warning "follow its message; check its driver and libraries";
    /// Its table is not what it promised.
    TableDiffers "table_differs" Warning "fill in the same name, device type and version in ultramarine_backend_init as in UM_DEFINE_BACKEND";
    /// It has no devices.
    NoDevices "no_devices" Info "none needed if this machine has no such device; otherwise check its driver";
    /// Its devices are served by a backend with a higher score.
    Duplicate "duplicate" Info "pass `duplicates=True` to load both";
    /// It crashed in a probe.
    ProbeCrashed "probe_crashed" Warning "run it under a debugger, or report it to the authors of the backend";
    /// It did not answer a probe in time.
    ProbeHung "probe_hung" Warning "report it to the authors of the backend";
    /// The probe itself did not work.
    ProbeFailed "probe_failed" Warning "set ULTRAMARINE_PROBE to the path of the program ultramarine-probe";
}

/// The reason why a candidate was left out: its kind, what was found, and the remedy.
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
