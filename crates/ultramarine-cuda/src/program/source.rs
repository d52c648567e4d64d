//! Sources of kernels, and the naming rule for entries.
//!
//! A kernel is an instance of a function template in `kernels/`, such as `softmax_apply`. Its
//! `extern "C"` entry is named after the template, with the suffix `_kernel`
//! (`softmax_apply_kernel`). Profilers show this name. The template's name is never assembled from
//! pieces, so a search for it finds both the template and the plan that launches it. [`Source`]
//! generates every entry.

use std::fmt::Write;

/// The source of a kernel: the headers that it includes, and the entry that calls a template of
/// `kernels/`.
#[derive(Clone, Debug)]
pub struct Source {
    /// Headers of `kernels/`.
    headers: &'static [&'static str],
    /// The template that the entry calls.
    template: &'static str,
    /// The template's arguments, and anything else that distinguishes the kernel from others of the
    /// template.
    arguments: String,
    /// Definitions between the headers and the entry.
    definitions: String,
    /// Arguments of `__launch_bounds__`, or empty.
    bounds: String,
    parameters: String,
    body: String,
    waits_itself: bool,
}

impl Source {
    /// A kernel that passes its parameters, by name, to `template<arguments>`.
    pub fn instance(
        headers: &'static [&'static str],
        template: &'static str,
        arguments: impl Into<String>,
        parameters: impl Into<String>,
    ) -> Self {
        let (arguments, parameters) = (arguments.into(), parameters.into());
        let list = match arguments.is_empty() {
            true => String::new(),
            false => format!("<{arguments}>"),
        };
        let body = format!("{template}{list}({});", names(&parameters));
        Self::with_body(headers, template, arguments, parameters, body)
    }

    /// A kernel whose body calls `template` in a custom way. `arguments` distinguish it from other
    /// kernels.
    pub fn with_body(
        headers: &'static [&'static str],
        template: &'static str,
        arguments: impl Into<String>,
        parameters: impl Into<String>,
        body: impl Into<String>,
    ) -> Self {
        let (arguments, parameters, body) = (arguments.into(), parameters.into(), body.into());
        let (definitions, bounds) = Default::default();
        let waits_itself = false;
        Self { headers, template, arguments, definitions, bounds, parameters, body, waits_itself }
    }

    /// Adds `__launch_bounds__`: threads per block and, after a comma, blocks that run at once.
    pub fn bounded(self, bounds: impl ToString) -> Self {
        Self { bounds: bounds.to_string(), ..self }
    }

    /// Adds a parameter and a condition on it; the kernel does nothing if the condition is false.
    pub fn guarded(mut self, parameter: &str, condition: &str) -> Self {
        self.parameters += &format!(", {parameter}");
        self.body = format!("if ({condition}) {}", self.body);
        self
    }

    /// Adds definitions between the headers and the entry.
    pub fn define(self, definitions: String) -> Self {
        Self { definitions, ..self }
    }

    /// Marks a template that itself waits until the previous kernel has ended (`wait_for_last` of
    /// `number.cuh`).
    pub fn waiting_itself(self) -> Self {
        Self { waits_itself: true, ..self }
    }

    /// True if the kernel does nothing before the previous one has ended, wherever it is launched.
    pub fn waits(&self) -> bool {
        !self.waits_itself
    }

    /// The unique name: equal names mean equal sources.
    pub fn name(&self) -> String {
        format!("{} {}", self.template, self.arguments)
    }

    /// The name of the `extern "C"` function.
    pub fn entry(&self) -> String {
        format!("{}_kernel", self.template)
    }

    /// The complete source.
    pub fn text(&self) -> String {
        let mut text = self.headers.concat();
        text.push_str(&self.definitions);
        let bounds = match self.bounds.is_empty() {
            true => String::new(),
            false => format!("__launch_bounds__({}) ", self.bounds),
        };
        let (entry, parameters, body) = (self.entry(), &self.parameters, &self.body);
        // Lets the next kernel be prepared, and waits for the end of the previous one. So a launch costs little while
        // another kernel runs.
        let begin = match self.waits() {
            true => "let_next_begin(); wait_for_last();",
            false => "let_next_begin();",
        };
        let _ = writeln!(
            text,
            "extern \"C\" __global__ void {bounds}{entry}({parameters}) {{ {begin} {body} }}"
        );
        text
    }
}

/// The names in a list of parameters.
fn names(parameters: &str) -> String {
    let name = |p: &str| p.rsplit([' ', '*']).next().unwrap_or("").to_owned();
    // A comma may be inside a type such as `Walk<2, 1>`, so parts are counted by the depth of angle
    // brackets.
    let mut depth = 0_i32;
    let mut parts = vec![String::new()];
    for c in parameters.chars() {
        depth += i32::from(c == '<') - i32::from(c == '>');
        match c {
            ',' if depth == 0 => parts.push(String::new()),
            c => parts.last_mut().into_iter().for_each(|part| part.push(c)),
        }
    }
    parts.iter().map(|part| name(part.trim())).collect::<Vec<_>>().join(", ")
}

/// The type of indices in kernels.
pub const fn index(wide: bool) -> &'static str {
    if wide { "i64" } else { "i32" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_passes_its_parameters_on() {
        let parameters = "const F32::T *in, F32::A *totals, const Line line, const Walk<2, 32> w";
        let source = Source::instance(&["// header\n"], "sum_rows", "F32, 32", parameters);
        assert_eq!(
            source.bounded(256).text(),
            format!(
                "// header\nextern \"C\" __global__ void __launch_bounds__(256) sum_rows_kernel({parameters}) \
                 {{ let_next_begin(); wait_for_last(); sum_rows<F32, 32>(in, totals, line, w); }}\n"
            )
        );
        let plain = Source::instance(&[], "fill_pairs", "", "u64 *out, i64 n").waiting_itself();
        let guarded = plain.clone().guarded("const u32 *only", "*only");
        assert!(guarded.text().ends_with(
            "fill_pairs_kernel(u64 *out, i64 n, const u32 *only) \
             { let_next_begin(); if (*only) fill_pairs(out, n); }\n"
        ));
        assert!(plain.text().ends_with("{ let_next_begin(); fill_pairs(out, n); }\n"));
        assert_eq!(
            (plain.entry().as_str(), plain.name().trim()),
            ("fill_pairs_kernel", "fill_pairs")
        );
    }
}
