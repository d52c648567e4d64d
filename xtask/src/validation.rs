//! Runs the kit on the Vulkan backend under Khronos' validation layer, with its synchronisation
//! checks. The layer must not report anything.

use crate::plugins::{self, Built};
use crate::profile::Profile;
use crate::sh;
use crate::test::Outcome;
use anyhow::{Context, Result};
use std::path::Path;

/// The layer's name.
const LAYER: &str = "VK_LAYER_KHRONOS_validation";
/// Directories that may have the layer's manifest.
const MANIFESTS: [&str; 2] = ["/usr/share/vulkan/explicit_layer.d", "/etc/vulkan/explicit_layer.d"];

/// Groups of the kit that use every kind of command and take only seconds.
const GROUPS: [&str; 8] = [
    "memory",
    "streams",
    "threads",
    "interfaces",
    "kernels",
    "ops.copy",
    "ops.reduce",
    "ops.gather",
];

/// The layer writes its messages to standard error, because the kit does not hide that of its
/// processes.
const SETTINGS: &str = "\
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error,warn,perf
khronos_validation.log_filename = /dev/stderr
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
";

/// Runs some groups of the kit, or all.
pub fn check(plugin: &Built, full: bool) -> Result<Outcome> {
    let plugin = match plugin {
        Built::At(path) => path,
        Built::Missing(what) => return Ok(Outcome::Missing(what.clone())),
    };
    let manifest =
        |folder: &&str| Path::new(folder).join("VkLayer_khronos_validation.json").exists();
    if !MANIFESTS.iter().any(manifest) {
        let missing = "there is no validation layer (Debian: vulkan-validationlayers)";
        return Ok(Outcome::Missing(missing.to_owned()));
    }
    let settings = sh::root().join("target/vulkan-validation");
    std::fs::create_dir_all(&settings)?;
    std::fs::write(settings.join("vk_layer_settings.txt"), SETTINGS)?;
    let program = format!("ultramarine-conform{}", std::env::consts::EXE_SUFFIX);
    let mut kit = sh::cmd(Profile::Checked.folder().join(program), &["--verbose"]);
    for group in GROUPS.iter().filter(|_| !full) {
        kit.args(["--group", group]);
    }
    kit.arg(plugin).env("VK_LAYER_SETTINGS_PATH", settings).env("VK_INSTANCE_LAYERS", LAYER);
    plugins::on_vulkan(&mut kit);
    let output = kit.output().context("the kit does not start")?;
    let [report, messages] = [&output.stdout, &output.stderr].map(|t| String::from_utf8_lossy(t));
    let mut found = messages.lines().filter(|line| line.contains("Validation "));
    if let Some(first) = found.next() {
        sh::print(&messages);
        return Ok(Outcome::Wrong(format!("{} messages: {first}", 1 + found.count())));
    }
    let last = report.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Ok(match output.status.success() {
        true => Outcome::Right(format!("no messages; {}", last.trim())),
        false => Outcome::Wrong(last.trim().to_owned()),
    })
}
