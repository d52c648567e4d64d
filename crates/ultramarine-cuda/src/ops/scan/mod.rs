//! SCAN: running reductions.

mod layout;

use self::layout::{Layout, Way};
use crate::launch::{Ask, BLOCK, Dtype, Grid, Job, MAX_AXES, Work, launch};
use crate::ops::text;
use crate::program::{Lazy, Source};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{ScanAttrs, reduce};

const TEXTS: &[&str] = &[text::NUMBER, text::WALK, include_str!("../../../kernels/scan.cuh")];

/// Numbers of axes of rows that kernels are compiled for: mostly they join to one.
const ROOMS: [usize; 2] = [1, MAX_AXES];

/// A kernel for each of [`ROOMS`].
type Pair = [Lazy; 2];

struct Scan {
    axis: usize,
    reverse: bool,
    /// By [`Way::place`].
    ways: [Pair; Way::COUNT],
    /// Totals of chunks, by the way that their rows are read.
    row_totals: [Pair; 2],
    lane_totals: Pair,
    /// What precedes the chunks of a row.
    carry: Lazy,
}

/// SCAN.
pub fn prepare(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    ask.elementwise(1)?;
    let attributes: ScanAttrs = ask.attributes()?;
    let (input, output) = (ask.input(0)?, ask.output(0)?);
    let axis = attributes.axis as usize;
    if input.dtype != output.dtype || axis >= input.ndim {
        return Err(Failure::invalid(format!(
            "a scan along axis {axis} of {} elements of rank {} as {}: the axis is below the rank \
             and both dtypes are one",
            input.dtype.name(),
            input.ndim,
            output.dtype.name()
        )));
    }
    let dtype = input.dtype;
    let exponents = dtype.is_real() || dtype.is_complex();
    if !(attributes.op <= reduce::MAX || attributes.op == reduce::LOGADDEXP && exponents) {
        return Err(Failure::unsupported(format!(
            "scan operation {} of {}: there are sum, prod, min, max, and logaddexp of floats",
            attributes.op,
            dtype.name()
        )));
    }
    let (reverse, inclusive) = (attributes.reverse != 0, attributes.inclusive != 0);
    let of = Text { dtype, op: attributes.op, reverse, inclusive };
    Ok(Box::new(Scan {
        axis,
        reverse,
        ways: Way::ALL.map(|way| ROOMS.map(|room| of.way(way, room))),
        row_totals: [false, true].map(|packed| ROOMS.map(|room| of.row_totals(packed, room))),
        lane_totals: ROOMS.map(|room| of.lane_totals(room)),
        carry: of.carry(),
    }))
}

/// What the kernels' texts depend on.
#[derive(Clone, Copy)]
struct Text {
    dtype: Dtype,
    op: u32,
    reverse: bool,
    inclusive: bool,
}

impl Text {
    fn kernel(self, what: &str, parameters: &str, call: &str) -> Lazy {
        let name = format!("scan {what} {} {}", self.dtype.tag(), self.op);
        let tail =
            format!("extern \"C\" __global__ void kernel({parameters}) {{ {call}(ARGUMENTS); }}\n")
                .replace("ARGUMENTS", &arguments(parameters));
        Lazy::new(Source::new(name, TEXTS, tail))
    }

    fn way(self, way: Way, room: usize) -> Lazy {
        let (d, op, inclusive) = (self.dtype.tag(), self.op, self.inclusive);
        let parameters = format!(
            "const {d}::T *in, {d}::T *out, const {d}::A *carries, const Line line, \
             const Walk<2, {room}> w"
        );
        let (e, v, one_warp) = match way {
            Way::Lanes => {
                let call = format!("scan_lanes<{d}, {op}, {inclusive}, {room}>");
                return self.kernel(&format!("lanes {inclusive} {room}"), &parameters, &call);
            }
            Way::Rows { group, .. } => {
                (way.pack(self.dtype), way.packs(self.dtype), group.is_warp())
            }
        };
        // Elements one by one are walked backwards by their steps.
        let reverse = self.reverse && e > 1;
        let instance = format!("{op}, {inclusive}, {e}, {v}, {reverse}, {one_warp}, {room}");
        self.kernel(
            &format!("rows {instance}"),
            &parameters,
            &format!("scan_rows<{d}, {instance}>"),
        )
    }

    fn row_totals(self, packed: bool, room: usize) -> Lazy {
        let (d, op) = (self.dtype.tag(), self.op);
        let parameters =
            format!("const {d}::T *in, {d}::A *totals, const Line line, const Walk<2, {room}> w");
        let e = if packed { 16 / self.dtype.bytes() } else { 1 };
        let instance = format!("{op}, {e}, {}, {room}", self.reverse && e > 1);
        self.kernel(
            &format!("row totals {instance}"),
            &parameters,
            &format!("scan_row_totals<{d}, {instance}>"),
        )
    }

    fn lane_totals(self, room: usize) -> Lazy {
        let (d, op) = (self.dtype.tag(), self.op);
        let parameters =
            format!("const {d}::T *in, {d}::A *totals, const Line line, const Walk<2, {room}> w");
        self.kernel(
            &format!("lane totals {room}"),
            &parameters,
            &format!("scan_lane_totals<{d}, {op}, {room}>"),
        )
    }

    /// An exclusive scan of totals, in place.
    fn carry(self) -> Lazy {
        let dtype = if self.dtype.is_half() { Dtype::Float32 } else { self.dtype };
        let way = Way::Rows { packed: false, group: layout::Group::Block };
        Self { dtype, inclusive: false, reverse: false, ..self }.way(way, 1)
    }
}

/// The names of a list of parameters.
fn arguments(parameters: &str) -> String {
    let name = |p: &str| p.rsplit([' ', '*']).next().unwrap_or("").to_owned();
    // The comma of `Walk<2, 1>` parts nothing: what follows it begins with a number.
    let parts = parameters.split(", ").filter(|p| !p.ends_with("Walk<2"));
    parts.map(name).collect::<Vec<_>>().join(", ")
}

impl Work for Scan {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        Ok(Layout::of(job, self.axis, self.reverse)?.workspace())
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let l = Layout::of(job, self.axis, self.reverse)?;
        let room = usize::from(l.rows.count > ROOMS[0]);
        let (line, walk) = (l.line(), l.rows.parameter_in(ROOMS[room]));
        let mut carries = 0;
        if l.chunks > 1 {
            carries = job.scratch()?;
            let totals = l.rows.len() * (l.chunks - 1);
            match l.way {
                Way::Lanes => {
                    let kernel = self.lane_totals[room].get(&job.device.programs)?;
                    let grid = Grid::line(blocks(totals.div_ceil(u64::from(BLOCK))), BLOCK);
                    launch!(job, &kernel, grid; l.from, carries, line[..], walk[..])?;
                }
                Way::Rows { packed, .. } => {
                    let kernel =
                        self.row_totals[usize::from(packed)][room].get(&job.device.programs)?;
                    let grid = Grid::line(blocks(totals), BLOCK);
                    launch!(job, &kernel, grid; l.from, carries, line[..], walk[..])?;
                }
            }
            let (line, walk) = l.carry();
            let kernel = self.carry.get(&job.device.programs)?;
            let grid = Grid::line(blocks(l.rows.len()), BLOCK);
            launch!(job, &kernel, grid; carries, carries, carries, line[..], walk[..])?;
        }
        let kernel = self.ways[l.way.place()][room].get(&job.device.programs)?;
        let grid = Grid::line(blocks(l.blocks()), BLOCK);
        launch!(job, &kernel, grid; l.from, l.to, carries, line[..], walk[..])
    }
}

/// A grid of so many blocks, or as many as there can be: the kernels go on by the grid's size.
fn blocks(count: u64) -> u32 {
    count.clamp(1, i32::MAX as u64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_the_names_of_parameters() {
        let parameters = "const F32::T *in, F32::A *totals, const Line line, const Walk<2, 32> w";
        assert_eq!(arguments(parameters), "in, totals, line, w");
    }
}
