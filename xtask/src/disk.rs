//! Checks for free disk space, because compilers and linkers without space fail in ways that look
//! like other faults.

use crate::sh;
use anyhow::{Result, bail};

/// Bytes that the builds, Python packages and caches of a fresh clone may take.
const FRESH: u64 = 10 << 30;
/// Bytes by which existing builds may grow.
const AGAIN: u64 = 4 << 30;

/// Prints the free space where builds are stored. Returns an error if there is too little. On
/// systems other than Unix, the free space is not known.
pub fn check() -> Result<()> {
    let target = sh::root().join("target");
    std::fs::create_dir_all(&target)?;
    let Ok(table) = sh::read(sh::cmd("df", &["-Pk", &target.to_string_lossy()])) else {
        return Ok(());
    };
    let Some(free) = free(&table) else { return Ok(()) };
    let needed = if target.join("checked/deps").is_dir() { AGAIN } else { FRESH };
    let gib = |bytes: u64| bytes as f64 / (1_u64 << 30) as f64;
    println!("free on the disk: {:.1} GiB", gib(free));
    if free < needed {
        bail!(
            "{:.1} GiB are free where {} is, and the tests take up to {:.0} GiB. Remove files, such as old builds: `cargo clean`.",
            gib(free),
            target.display(),
            gib(needed)
        );
    }
    Ok(())
}

/// Returns the available bytes in the output of `df -Pk`.
fn free(table: &str) -> Option<u64> {
    let kilobytes: u64 = table.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    #[test]
    fn tables_are_read() {
        let head = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n";
        let table = format!("{head}/dev/vda        263935144 48513228  44981780      52% /\n");
        assert_eq!(super::free(&table), Some(44_981_780 << 10));
        assert_eq!(super::free(head), None);
    }
}
