//! Faults of loaders, drivers and devices, in child processes: what is missing by the environment, the rest by the layer
//! of `testing/vulkan-layer`. Without a device the tests say that they are skipped.

use std::ffi::OsString;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use ultramarine_abi::helper::Device as _;
use ultramarine_wgpu::dtype::Dtype;
use ultramarine_wgpu::hal::Adapters;
use ultramarine_wgpu::launch::Device;
use ultramarine_wgpu::memory::Buffer;
use ultramarine_wgpu::program::Kernel;
use ultramarine_wgpu::shader::source::groups_for;
use ultramarine_wgpu::shader::{Program, Tensor};
use ultramarine_wgpu::streams::Batch;

/// Names the case of a child.
const CASE: &str = "ULTRAMARINE_TEST_CASE";
/// Elements of the tensors here.
const N: u32 = 16;

/// A child process that runs a case, under the layer if it has something to do.
fn child(case: &str, layer: &str) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(&program);
    command.args(["--exact", "in_a_child", "--ignored", "--nocapture"]).env(CASE, case);
    // Nothing of another run.
    command.env("ULTRAMARINE_VULKAN_CACHE", "0").env_remove("ULTRAMARINE_VULKAN_DEVICES");
    if !layer.is_empty() {
        let folder = folder(&format!("layer-{case}"));
        let library = program.with_file_name("libultramarine_test_vulkan_layer.so");
        let manifest = include_str!("../../../testing/vulkan-layer/manifest.json");
        let library = library.to_str().unwrap();
        let manifest = manifest.replace("./libultramarine_test_vulkan_layer.so", library);
        std::fs::write(folder.join("layer.json"), manifest).unwrap();
        command.env("VK_LAYER_PATH", folder).env("ULTRAMARINE_TEST_LAYER", layer);
        command.env("VK_INSTANCE_LAYERS", "VK_LAYER_ULTRAMARINE_test");
    }
    command
}

/// A folder of the tests' own. What they write there is the same in every run.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("vulkan-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Output of a child, which has to end by itself, and well.
fn said(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(status.success(), "{status}: {text}");
    assert!(text.contains("test in_a_child ... "), "{text}");
    text
}

/// Likewise, or `None` after a word where there is no device.
fn on_device(case: &str, layer: &str) -> Option<String> {
    match Adapters::enumerate() {
        Ok(_) => Some(said(&mut child(case, layer))),
        Err(why) => {
            #[allow(clippy::print_stderr, reason = "a test that does not run says so")]
            {
                eprintln!("SKIPPED: {why}");
            }
            None
        }
    }
}

#[test]
fn without_a_driver_the_report_says_what_to_install() {
    let mut command = child("enumerate", "");
    for variable in ["VK_ICD_FILENAMES", "VK_DRIVER_FILES"] {
        command.env(variable, "/nowhere.json");
    }
    let text = said(&mut command);
    assert!(text.contains("Install") && text.contains("mesa-vulkan-drivers"), "{text}");
}

#[test]
fn without_a_loader_the_report_says_what_to_install() {
    let folder = folder("loader");
    for name in ["libvulkan.so", "libvulkan.so.1"] {
        std::fs::write(folder.join(name), "no library").unwrap();
    }
    let mut paths = OsString::from(&folder);
    if let Some(more) = std::env::var_os("LD_LIBRARY_PATH") {
        paths.push(":");
        paths.push(more);
    }
    let text = said(child("enumerate", "").env("LD_LIBRARY_PATH", paths));
    assert!(text.contains("Vulkan does not start") && text.contains("libvulkan1"), "{text}");
}

#[test]
fn a_choice_of_no_device_says_which_there_are() {
    if on_device("enumerate", "").is_some() {
        let text = said(child("enumerate", "").env("ULTRAMARINE_VULKAN_DEVICES", "no such GPU"));
        assert!(text.contains("no such gpu") && text.contains("There are: 0 "), "{text}");
        let text = said(child("enumerate", "").env("ULTRAMARINE_VULKAN_DEVICES", "0"));
        assert!(text.contains("1 devices"), "{text}");
    }
}

#[test]
fn a_lost_device_names_the_operation() {
    let lost_at = |n: u32| on_device("work", &format!("lose={n}"));
    // The buffers of the copy are uploaded first.
    let texts: Vec<_> = (3..=8).map_while(lost_at).collect();
    for text in &texts {
        for part in ["is lost", "Restart the process", "still here"] {
            assert!(text.contains(part), "{text}");
        }
    }
    // Some submissions have nothing but copies from the host and to it.
    let named = texts.iter().any(|text| text.contains("copy of a test"));
    assert!(named || texts.is_empty(), "no operation: {texts:?}");
}

#[test]
fn a_driver_that_lies_about_its_memory_is_refused_nothing_else() {
    let Some(text) = on_device("large", "range=4000000000,memory=300000000") else { return };
    let message = "the device has no memory for a buffer of 3221225472 bytes. Free arrays";
    assert!(text.contains(message), "{text}");
    assert!(text.contains("16 elements are right"), "{text}");
}

#[test]
fn small_arrays_share_pieces_of_memory() {
    let Some(text) = on_device("many", "allocations=8,count") else { return };
    assert!(text.contains("5000 buffers"), "{text}");
}

#[test]
fn commands_share_submissions_barriers_and_descriptor_sets() {
    let Some(text) = on_device("chain", "count") else { return };
    let count = |name: &str| -> u64 {
        let (_, behind) = text.rsplit_once(&format!("{name} ")).unwrap_or_else(|| panic!("{text}"));
        behind.split(',').next().and_then(|n| n.trim().parse().ok()).unwrap()
    };
    assert_eq!(count("dispatches"), 1000);
    assert!(count("submissions") < 20, "{text}");
    // Of pairs of independent commands one has a barrier.
    assert!(count("barriers") < 500 + 2 * count("submissions") + 20, "{text}");
    assert!(count("descriptor sets") < 20, "{text}");
    assert!(text.contains("16 elements are right"), "{text}");
}

#[test]
#[ignore = "the other tests run it in processes of their own"]
#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn in_a_child() {
    let adapters = match Adapters::enumerate() {
        Ok(adapters) => adapters,
        Err(why) => return println!("{why}"),
    };
    let open = || Device::open(&adapters.list[0]).unwrap();
    match std::env::var(CASE).as_deref() {
        Ok("enumerate") => println!("{} devices", adapters.list.len()),
        Ok("work") => {
            let device = open();
            let copy = Copy::new(&device);
            let failure =
                (0..20).find_map(|_| copy.run(&device).and_then(|()| copy.check(&device)).err());
            println!("{}", failure.unwrap().text);
            let again = device.alloc(16).map(drop).unwrap_err();
            println!("{again}");
            drop((copy, device));
            println!("still here");
        }
        Ok("large") => {
            let device = open();
            println!("{}", device.alloc(3 << 30).map(drop).unwrap_err());
            let copy = Copy::new(&device);
            copy.run(&device).and_then(|()| copy.check(&device)).unwrap();
        }
        Ok("many") => {
            let device = open();
            let buffers: Vec<_> = (1..=5000).map(|n| device.alloc(n).unwrap()).collect();
            println!("{} buffers", buffers.len());
        }
        Ok("chain") => {
            let device = open();
            let pair = [Copy::new(&device), Copy::new(&device)];
            let (event, other) = (device.event().unwrap(), device.stream().unwrap());
            // Collected on the host meanwhile.
            device.wait_stream(&device.default_stream, &event, 1).unwrap();
            for i in 0..1000 {
                pair[i % 2].run(&device).unwrap();
            }
            device.record(&other, &event, 1).unwrap();
            pair[1].check(&device).unwrap();
        }
        case => panic!("{case:?}"),
    }
}

/// A kernel that copies, and its buffers.
struct Copy {
    kernel: Arc<Kernel>,
    from: Buffer,
    to: Buffer,
}

impl Copy {
    fn new(device: &Device) -> Self {
        let tensor = |name| Tensor { name, dtype: Dtype::Int32 };
        let program = Program::new(&[tensor("a"), tensor("out")]);
        let source = program.body("store_out(i, load_a(i));").build();
        let kernel = device.programs.get(source).unwrap();
        let bytes = u64::from(N) * 4;
        let (from, to) = (device.alloc(bytes).unwrap(), device.alloc(bytes).unwrap());
        device.upload(None, &from, 0, &[7; N as usize * 4]).unwrap();
        Self { kernel, from, to }
    }

    fn run(&self, device: &Device) -> ultramarine_abi::helper::Result<()> {
        let mut batch = Batch::default();
        let groups = groups_for(N.into(), device.context.properties.max_groups);
        batch.dispatch(&self.kernel, &[&self.from.0, &self.to.0], (N, &[]), groups);
        batch.names.push("copy of a test".into());
        device.scheduler.submit(device.lane(None), batch)
    }

    #[allow(clippy::print_stdout, reason = "the parent reads it")]
    fn check(&self, device: &Device) -> ultramarine_abi::helper::Result<()> {
        let mut target = [MaybeUninit::uninit(); N as usize * 4];
        device.download(None, &self.to, 0, &mut target)?;
        // SAFETY: a download fills its target.
        assert!(target.iter().all(|byte| unsafe { byte.assume_init() } == 7));
        println!("{N} elements are right");
        Ok(())
    }
}
