//! The reasons why candidates are left out: one row per reason, with its log level and remedy. The
//! level is `Warning` if there is a problem with the file or its location. It is `Info` if the file
//! is valid, but does not suit this machine or this call.

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
            /// Returns the code's name in the JSON report.
            pub fn name(self) -> &'static str {
                match self { $(Code::$code => $name,)* }
            }

            /// Returns the code with a name.
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
    /// There is no such file, or the target of a link does not exist.
    Missing "missing" Warning "check the path, or remove the link";
    /// The file cannot be opened or read.
    Unreadable "unreadable" Warning "make the file readable for this user";
    /// The links form a circle.
    LinkLoop "link_loop" Warning "remove the link, or point it to the library";
    /// The path is not a regular file, but a directory, a pipe, a device and so on.
    NotRegular "not_regular" Warning "put the library itself at this path";
    /// The file's name does not have the form of a backend's name.
    FileName "file_name" Warning
        "name it libultramarine-NAME[-VARIANT] with the system's extension for libraries; NAME has lower-case letters, digits and _";
    /// Every user may write to the file.
    WritableFile "writable_file" Warning "chmod o-w on the file";
    /// Every user may write to a directory above the file.
    WritableDirectory "writable_directory" Warning
        "move the file into a directory that only its owner can write to, or chmod o-w on that directory";
    /// The file belongs to neither root nor the user.
    Owner "owner" Warning
        "chown the file to root or to this user, or load it by its path";
    /// The file is not a shared library of this system.
    NotALibrary "not_a_library" Warning
        "put a shared library at this path, built with -shared -fPIC on this system";
    /// The file is shorter than its headers say.
    CutShort "cut_short" Warning "copy or install the file again";
    /// The file was built for another processor architecture.
    Machine "machine" Info "install the build for this machine";
    /// The note in the file is invalid.
    NoteDamaged "note_damaged" Warning "rebuild it with the installed backend.h";
    /// The declared name differs from the file's name.
    NameDiffers "name_differs" Warning "rename the file, or correct the name in UM_DEFINE_BACKEND";
    /// The versions of the contract are incompatible.
    AbiVersion "abi_version" Warning "install the build of the backend for this version of ultramarine, or rebuild it with the installed headers";
    /// Major versions of DLPack differ.
    DlpackVersion "dlpack_version" Warning "rebuild it with the dlpack.h next to the installed backend.h";
    /// The plugin was built for another width of pointers.
    PointerWidth "pointer_width" Info "install the build for this machine";
    /// The plugin was built for another byte order.
    Endianness "endianness" Info "install the build for this machine";
    /// Its function table is too short.
    TableShort "table_short" Warning "rebuild it with the installed backend.h";
    /// Its ABI info is too short.
    InfoShort "info_short" Warning "rebuild it with the installed backend.h";
    /// The plugin was built with a sanitizer that this process does not use.
    Sanitizer "sanitizer" Warning "install a build without a sanitizer, or run the program under the same one";
    /// The device type is not one of DLPack's.
    DeviceType "device_type" Warning "pass one of DLPack's device types to UM_DEFINE_BACKEND";
    /// The name or the variant has characters that are not allowed.
    BadName "bad_name" Warning "correct name and variant in UM_DEFINE_BACKEND";
    /// The processor lacks a feature that the plugin needs.
    CpuFeature "cpu_feature" Info "install a variant for older processors";
    /// The plugin needs a processor feature that is unknown to the loader.
    UnknownCpuFeature "unknown_cpu_feature" Warning
        "use the compiler's name for the feature, or update ultramarine";
    /// The name does not match the allowed patterns.
    NotAllowed "not_allowed" Info "add its name to `allowed`";
    /// The name matches a pattern that the caller blocked.
    Blocked "blocked" Info "remove the pattern from `blocked`";
    /// The same file was found under another name.
    SameFile "same_file" Info "none needed; one of the two files can be removed";
    /// A backend with that name is loaded already.
    NameTaken "name_taken" Info "restart the program to load the other one";
    /// The system's loader refused the file.
    OpenFailed "open_failed" Warning "run ldd on the file to find missing libraries";
    /// An entry point is missing.
    NoEntryPoint "no_entry_point" Warning
        "define the entry points of backend.h and include the header, which exports them; in C++ within extern \"C\"";
    /// The ABI info cannot be read, or is garbage.
    InfoGarbage "info_garbage" Warning "fill no more than the size that the host sets";
    /// The ABI info differs from the one in the note.
    NoteDiffers "note_differs" Warning "build the note and the entry point from the same constant, as UM_DEFINE_BACKEND does";
    /// The plugin reports that it cannot run on this machine.
    ScoreZero "score_zero" Info "none needed if this machine lacks the device";
    /// The score is not plausible.
    ScoreGarbage "score_garbage" Warning "return a score up to 10000, and no more devices than there are";
    /// The filter returned false.
    Filtered "filtered" Info "return true for it from the filter";
    /// The filter failed.
    FilterFailed "filter_failed" Warning "fix the error in the filter";
    /// Another variant of the same name has a better score.
    Outscored "outscored" Info "block the other one by NAME-VARIANT, or load this one by its path";
    /// The plugin's init failed.
    InitFailed "init_failed" Warning "follow its message; check its driver and libraries";
    /// The table differs from the ABI info, or violates the contract.
    TableDiffers "table_differs" Warning "fill in the same name, device type and version in ultramarine_backend_init as in UM_DEFINE_BACKEND";
    /// The plugin has no devices.
    NoDevices "no_devices" Info "none needed if this machine has no such device; otherwise check its driver";
    /// A backend with a higher score serves the same devices.
    Duplicate "duplicate" Info "pass `duplicates=True` to load both";
    /// The plugin crashed in a probe.
    ProbeCrashed "probe_crashed" Warning "run it under a debugger, or report it to the authors of the backend";
    /// The plugin did not answer a probe in time.
    ProbeHung "probe_hung" Warning "report it to the authors of the backend";
    /// The probe program itself failed.
    ProbeFailed "probe_failed" Warning "set ULTRAMARINE_PROBE to the path of the program ultramarine-probe";
}

/// The reason why a candidate was left out: its kind, the problem, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Its kind.
    pub code: Code,
    /// A description of the problem, with the values.
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
