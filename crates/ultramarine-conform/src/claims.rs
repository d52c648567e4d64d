//! Compares the properties that a device claims with the findings of all groups.

use crate::parent::Findings;

/// Families that compute. Other families also move elements, which needs no arithmetic.
const COMPUTE: [&str; 5] = ["unary", "binary", "reduce", "scan", "matmul"];

/// A dtype in the arithmetic mask must have an operation that computes with it, because moving
/// elements needs only storage. float32 is exempt, because a first backend claims it before it has
/// such an operation.
pub fn arithmetic(findings: &mut Findings) {
    let claimed = findings.property("device").and_then(|d| d["arithmetic"].as_array());
    let claimed: Vec<String> =
        claimed.into_iter().flatten().filter_map(|d| d.as_str()).map(str::to_owned).collect();
    for dtype in claimed.iter().filter(|d| *d != "float32") {
        let mut computed = findings
            .cells
            .iter()
            .filter(|c| c["dtype"] == **dtype && COMPUTE.iter().any(|family| c["cell"] == *family));
        let (mut any, mut native) = (false, false);
        for cell in &mut computed {
            any = true;
            native |= cell["plain"] != "refused";
        }
        if any {
            let (result, text) = if native {
                ("pass", String::new())
            } else {
                let text = format!(
                    "dtypes_arithmetic has {dtype}, and no operation computes with it: clear the bit, or implement one"
                );
                ("fail", text)
            };
            findings.add("abi", &format!("abi/arithmetic of {dtype}"), result, &text);
        }
    }
}
