//! Users' kernels in the Metal Shading Language. The host numbers a kernel's buffers from 0. The
//! hal binds them from 1, because buffer 0 is for immediates, which the backend's own kernels use.

use std::ops::Range;

/// A kernel's source with the hal's buffer numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// The source.
    pub source: String,
    /// Number of buffers, which are the arguments of a launch.
    pub buffers: usize,
    /// A bit for each buffer that the kernel may write.
    pub written: u32,
}

const BUFFER: &str = "[[buffer(";

/// Returns the source with the buffers of an entry point numbered from 1. The error says what is
/// missing: the kernel, or buffers numbered from 0.
pub fn numbered(source: &str, entry: &str) -> Result<Numbered, String> {
    let parameters =
        parameters(source, entry).ok_or_else(|| format!("the source has no kernel {entry}"))?;
    let mut text = source[..parameters.start].to_owned();
    let (mut found, mut written) = (Vec::new(), 0);
    for parameter in split(&source[parameters.clone()]) {
        let Some(at) = parameter.find(BUFFER) else {
            text.push_str(parameter);
            continue;
        };
        let (before, number) = parameter.split_at(at + BUFFER.len());
        let (number, behind) = number.split_once(')').unwrap_or((number, ""));
        let number = number.trim().parse::<u32>().map_err(|_| {
            format!("the buffer of {:?} has no number", before.trim_start_matches([',', '\n', ' ']))
        })?;
        let words: Vec<&str> = before.split_whitespace().collect();
        if words.contains(&"device") && !words.contains(&"const") {
            written |= 1_u32.checked_shl(number).unwrap_or(0);
        }
        text.push_str(&format!("{before}{})", number.saturating_add(1)));
        text.push_str(behind);
        found.push(number);
    }
    text.push_str(&source[parameters.end..]);
    found.sort_unstable();
    if !found.iter().copied().eq(0..found.len() as u32) {
        return Err(format!("the buffers of {entry} are numbered {found:?}, not from 0 on"));
    }
    Ok(Numbered { source: text, buffers: found.len(), written })
}

/// Returns the range of an entry point's parameters, between their parentheses. A template instance
/// is named by `host_name`.
fn parameters(source: &str, entry: &str) -> Option<Range<usize>> {
    let named = format!("host_name(\"{entry}\")");
    let function = match source.find(&named) {
        Some(at) => {
            let rest = &source[at + named.len()..];
            let name = rest.split_once("decltype(")?.1;
            name.split_once('<')?.0.trim()
        }
        None => entry,
    };
    let head = format!("void {function}(");
    let start = source.find(&head)? + head.len();
    let mut depth = 1_u32;
    for (at, c) in source[start..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(start..start + at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Splits parameters. Each includes the comma before it.
fn split(parameters: &str) -> Vec<&str> {
    let (mut depth, mut start, mut all) = (0_i32, 0, Vec::new());
    for (at, c) in parameters.char_indices() {
        match c {
            '(' | '<' | '[' => depth += 1,
            ')' | '>' | ']' => depth -= 1,
            ',' if depth == 0 => {
                all.push(&parameters[start..at]);
                start = at;
            }
            _ => {}
        }
    }
    all.push(&parameters[start..]);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "#line 1 \"square_signature\"\n[[kernel]] void um_kernel_square(\n    \
        const device um_float32 *x [[buffer(0)]],\n    const constant int &x_ndim [[buffer(1)]],\n    \
        device um_float32 *y [[buffer(2)]],\n    uint3 thread_position_in_grid [[thread_position_in_grid]]) {\n\
        y[0] = f(x[0], 1); // [[buffer(0)]]\n}\n";

    #[test]
    fn buffers_are_numbered_behind_the_immediates() {
        let made = numbered(PLAIN, "um_kernel_square").unwrap();
        assert_eq!((made.buffers, made.written), (3, 0b100));
        let expected = PLAIN
            .replace("*y [[buffer(2)]]", "*y [[buffer(3)]]")
            .replace("ndim [[buffer(1)]]", "ndim [[buffer(2)]]")
            .replace("*x [[buffer(0)]]", "*x [[buffer(1)]]");
        // The body is unchanged.
        assert_eq!(made.source, expected);
    }

    #[test]
    fn instances_of_templates_are_found() {
        let text = "template <typename T, int N>\n[[kernel]] void um_body_f(\n    \
            const constant um_float32 &x [[buffer(0)]],\n    device atomic<um_int32> *y [[buffer(1)]]) {\n}\n\
            template [[host_name(\"um_kernel_f\")]] [[kernel]] decltype(um_body_f<um_float16, 2>) um_body_f<um_float16, 2>;\n";
        let made = numbered(text, "um_kernel_f").unwrap();
        assert_eq!((made.buffers, made.written), (2, 0b10));
        assert!(
            made.source.contains("&x [[buffer(1)]]") && made.source.contains("*y [[buffer(2)]]")
        );
        let none = numbered("[[kernel]] void f() { }", "f").unwrap();
        assert_eq!((none.buffers, none.source.as_str()), (0, "[[kernel]] void f() { }"));
    }

    #[test]
    fn what_launches_cannot_bind_is_refused() {
        let why = |text: &str| numbered(text, "f").unwrap_err();
        assert_eq!(why("[[kernel]] void g() { }"), "the source has no kernel f");
        assert_eq!(why("[[kernel]] void f(device int *x"), "the source has no kernel f");
        let twice = "void f(device int *x [[buffer(1)]], device int *y [[buffer(1)]]) { }";
        assert!(why(twice).contains("numbered [1, 1]"), "{}", why(twice));
        assert!(why("void f(device int *x [[buffer(N)]]) { }").contains("no number"));
    }
}
