//! The reasons why candidates are left out, each in a row with its log level and remedy. The level
//! is `Warning` if there is a problem with the file or its place, and `Info` if the file is valid,
//! but not for this machine or this call.

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

            /// Returns the code of a name.
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
    /// The file does not exist, or a link has no target.
    Missing "missing" Warning "check the path, or remove the link";
    /// The file cannot be opened or read.
    Unreadable "unreadable" Warning "make the file readable for this user";
    /// Links that form a circle.
    LinkLoop "link_loop" Warning "remove the link, or point it to the library";
    /// Not a regular file, but for example a directory, a pipe or a device.
    NotRegular "not_regular" Warning "put the library itself at this path";
    /// The file's name does not follow the scheme for backends.
    FileName "file_name" Warning
        "name it libultramarine-NAME[-VARIANT] with the system's extension for libraries; NAME has lower-case letters, digits and _";
    /// All users can write to the file.
    WritableFile "writable_file" Warning "chmod o-w on the file";
    /// All users can write to a directory above the file.
    WritableDirectory "writable_directory" Warning
        "move the file into a directory that only its owner can write to, or chmod o-w on that directory";
    /// Owned by neither root nor the user.
    Owner "owner" Warning
        "chown the file to root or to this user, or load it by its path";
    /// Not a shared library for this system.
    NotALibrary "not_a_library" Warning
        "put a shared library at this path, built with -shared -fPIC on this system";
    /// The file is shorter than its headers say.
    CutShort "cut_short" Warning "copy or install the file again";
    /// Built for other processors.
    Machine "machine" Info "install the build for this machine";
    /// The note is invalid.
    NoteDamaged "note_damaged" Warning "rebuild it with the installed backend.h";
    /// The declared name differs from the file's name.
    NameDiffers "name_differs" Warning "rename the file, or correct the name in UM_DEFINE_BACKEND";
    /// The versions of the contract are incompatible.
    AbiVersion "abi_version" Warning "install the build of the backend for this version of ultramarine, or rebuild it with the installed headers";
    /// Major versions of DLPack differ.
    DlpackVersion "dlpack_version" Warning "rebuild it with the dlpack.h next to the installed backend.h";
    /// The pointers have another width.
    PointerWidth "pointer_width" Info "install the build for this machine";
    /// The byte order differs.
    Endianness "endianness" Info "install the build for this machine";
    /// Its function table is too short.
    TableShort "table_short" Warning "rebuild it with the installed backend.h";
    /// Its ABI info is too short.
    InfoShort "info_short" Warning "rebuild it with the installed backend.h";
    /// Built with a sanitizer that this process does not run.
    Sanitizer "sanitizer" Warning "install a build without a sanitizer, or run the program under the same one";
    /// The device type does not exist.
    DeviceType "device_type" Warning "pass one of DLPack's device types to UM_DEFINE_BACKEND";
    /// The name or the variant has an invalid character.
    BadName "bad_name" Warning "correct name and variant in UM_DEFINE_BACKEND";
    /// The processor lacks a feature.
    CpuFeature "cpu_feature" Info "install a variant for older processors";
    /// A processor feature that is unknown here.
    UnknownCpuFeature "unknown_cpu_feature" Warning
        "use the compiler's name for the feature, or update ultramarine";
    /// Its name is not in the list of allowed names.
    NotAllowed "not_allowed" Info "add its name to `allowed`";
    /// Blocked by the caller.
    Blocked "blocked" Info "remove the pattern from `blocked`";
    /// The same file under another name.
    SameFile "same_file" Info "none needed; one of the two files can be removed";
    /// A backend of that name is loaded already.
    NameTaken "name_taken" Info "restart the program to load the other one";
    /// The system's loader refused the file.
    OpenFailed "open_failed" Warning "run ldd on the file to find missing libraries";
    /// An entry point is missing.
    NoEntryPoint "no_entry_point" Warning
        "define the entry points of backend.h and include the header, which exports them; in C++ within extern \"C\"";
    /// The ABI info is unavailable, or garbage.
    InfoGarbage "info_garbage" Warning "fill no more than the size that the host sets";
    /// The ABI info differs from the one in the note.
    NoteDiffers "note_differs" Warning "build the note and the entry point from the same constant, as UM_DEFINE_BACKEND does";
    /// Its score is 0, so it cannot run here.
    ScoreZero "score_zero" Info "none needed if this machine lacks the device";
    /// Its score is out of range.
    ScoreGarbage "score_garbage" Warning "return a score up to 10000, and no more devices than there are";
    /// The filter returned false.
    Filtered "filtered" Info "return true for it from the filter";
    /// The filter failed.
    FilterFailed "filter_failed" Warning "fix the error in the filter";
    /// Another candidate of its name has a higher score.
    Outscored "outscored" Info "block the other one by NAME-VARIANT, or load this one by its path";
    /// Its init failed.
    InitFailed "init_failed" Warning "follow its message; check its driver and libraries";
    /// Its table differs from what it declared.
    TableDiffers "table_differs" Warning "fill in the same name, device type and version in ultramarine_backend_init as in UM_DEFINE_BACKEND";
    /// It has no devices.
    NoDevices "no_devices" Info "none needed if this machine has no such device; otherwise check its driver";
    /// Its devices are served by a backend with a higher score.
    Duplicate "duplicate" Info "pass `duplicates=True` to load both";
    /// It crashed in a probe.
    ProbeCrashed "probe_crashed" Warning "run it under a debugger, or report it to the authors of the backend";
    /// It did not answer a probe in time.
    ProbeHung "probe_hung" Warning "report it to the authors of the backend";
    /// The probe program itself failed.
    ProbeFailed "probe_failed" Warning "set ULTRAMARINE_PROBE to the path of the program ultramarine-probe";
}

/// The reason why a candidate was left out: its kind, the problem, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Its kind.
    pub code: Code,
    /// The problem, with the offending values.
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
