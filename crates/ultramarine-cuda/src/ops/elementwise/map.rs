//! Elementwise functions of up to three tensors: the choice of the kernel of `elementwise/map.cuh`
//! for a command.

use super::rule::Weight;
use crate::launch::{Axes, BLOCK, Dtype, Grid, Job, View, enqueue, rank_for};
use crate::program::{Kernels, Source, index};
use core::ffi::c_void;
use ultramarine_abi::helper::Result;

/// Maximum number of bytes that a thread moves at once.
const WIDEST: u64 = 16;

/// Maximum number of tensors of a map: the inputs and the output.
const MOST_TENSORS: usize = 4;

/// The description of a [`Map`]. Its tensors are the inputs, followed by the output.
pub struct Spec<const K: usize> {
    /// A unique name.
    pub name: String,
    /// Headers of the kernels, including `elementwise/map.cuh`.
    pub headers: &'static [&'static str],
    /// An expression of `x`, `y` and `z`, which are elements of the inputs in their storage type.
    pub function: String,
    /// Dtypes.
    pub dtypes: [Dtype; K],
    /// The amount of code of the function.
    pub weight: Weight,
}

/// An elementwise function, with the kernels that were needed so far: for contiguous tensors, and
/// for any strides by rank.
pub struct Map<const K: usize> {
    spec: Spec<K>,
    kernels: Kernels<Strategy>,
}

/// The kernels of a map.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Strategy {
    /// Tensors without gaps, in packs of `pack` elements; the tensors in the mask `scalars` have
    /// one element.
    Flat { pack: u32, scalars: u32 },
    /// Any strides, in packs along the last axis.
    Walked { pack: u32, scalars: u32, rank: usize, wide: bool },
}

/// How a command's elements are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// `head` elements come before the first whole pack.
    Flat {
        pack: u32,
        scalars: u32,
        head: u64,
    },
    Walked {
        pack: u32,
        scalars: u32,
    },
}

impl<const K: usize> Map<K> {
    /// Makes a map without compiled kernels.
    pub fn new(spec: Spec<K>) -> Self {
        const { assert!(K <= MOST_TENSORS) };
        Self { spec, kernels: Kernels::default() }
    }

    /// Enqueues the function for inputs and an output of one shape.
    pub fn run(&self, job: &Job<'_>, views: [View<'_>; K]) -> Result<()> {
        let mut axes = in_order_of_output(&views);
        let mut addresses = views.map(|v| v.address);
        let bytes = self.spec.dtypes.map(Dtype::bytes);
        let layout = decide(&axes, &addresses, &bytes, self.pack());
        // The first parameter of the kernels is the output.
        addresses.rotate_right(1);
        let place = |value: *const u64| value.cast_mut().cast::<c_void>();
        // The addresses, followed by one or two more arguments.
        let mut arguments = [std::ptr::null_mut(); MOST_TENSORS + 2];
        for (argument, address) in arguments.iter_mut().zip(&addresses) {
            *argument = place(address);
        }
        let (counts, walk, strategy, items, more);
        match layout {
            Layout::Flat { pack, scalars, head } => {
                counts = [axes.len(), head];
                strategy = Strategy::Flat { pack, scalars };
                items = (axes.len() - head) / u64::from(pack);
                [arguments[K], arguments[K + 1]] = [place(&counts[0]), place(&counts[1])];
                more = 2;
            }
            Layout::Walked { pack, scalars } => {
                into_packs(&mut axes, pack);
                walk = axes.parameter();
                let wide = !axes.is_small();
                strategy = Strategy::Walked { pack, scalars, rank: rank_for(axes.count), wide };
                items = axes.len();
                arguments[K] = place(walk.as_ptr());
                more = 1;
            }
        }
        let kernel = self.kernels.get(&job.device.programs, strategy, || self.source(strategy))?;
        let block = u64::from(BLOCK) * u64::from(self.unrolled(strategy));
        let grid = Grid::exactly(items.div_ceil(block).max(1), BLOCK)?;
        // SAFETY: these are the parameters of `entry`; the layout stays inside the tensors.
        unsafe { enqueue(job, &kernel, grid, &mut arguments[..K + more]) }
    }

    /// Elements of a pack, if the tensors allow packs.
    fn pack(&self) -> u32 {
        let pack = pack_of(&self.spec.dtypes.map(Dtype::bytes));
        match self.spec.weight {
            Weight::Heavy if self.spec.dtypes[0].is_complex() => 1,
            Weight::Heavy => pack.min(4),
            _ => pack,
        }
    }

    /// Packs of each tensor that a thread has in flight: 64 bytes, and more for light functions.
    fn unrolled(&self, strategy: Strategy) -> u32 {
        let inputs = K as u32 - 1;
        match (self.spec.weight, strategy) {
            (Weight::Light, Strategy::Flat { pack: 1, .. } | Strategy::Walked { pack: 1, .. }) => 4,
            (Weight::Light, Strategy::Flat { .. }) => (4 / inputs.max(1)).max(2),
            (Weight::Heavy, _) => 1,
            _ => 2,
        }
    }

    fn source(&self, strategy: Strategy) -> Source {
        let spec = &self.spec;
        let tag = |k: usize| if k < K - 1 { spec.dtypes[k].tag() } else { "Absent" };
        let output = spec.dtypes[K - 1].tag();
        let definitions = format!(
            "struct Function {{\n  INLINE {output}::T of({}::T x, {}::T y, {}::T z) {{ return {}; }}\n}};\n",
            tag(0),
            tag(1),
            tag(2),
            spec.function
        );
        let mut parameters = format!("{output}::T *out");
        let mut values = "out".to_owned();
        for (k, place) in ["x", "y", "z"].into_iter().enumerate() {
            if k < K - 1 {
                parameters.push_str(&format!(", const {}::T *{place}", tag(k)));
                values.push_str(&format!(", {place}"));
            } else {
                values.push_str(", (const u8 *)0");
            }
        }
        let unrolled = self.unrolled(strategy);
        let tags = format!("{output}, {}, {}, {}", tag(0), tag(1), tag(2));
        let (template, list, short, parameter);
        match strategy {
            Strategy::Flat { pack, scalars } => {
                template = "map_flat";
                list = format!("{pack}, {unrolled}, {scalars}");
                short = format!("{pack} {scalars}");
                parameter = "i64 n, i64 head".to_owned();
                values.push_str(", n, head");
            }
            Strategy::Walked { pack, scalars, rank, wide } => {
                template = "map_walked";
                let index = index(wide);
                list = format!("{pack}, {unrolled}, {scalars}, {K}, {rank}, {index}");
                short = format!("{pack} {scalars} {rank} {index}");
                parameter = format!("const Walk<{K}, {rank}> w");
                values.push_str(", w");
            }
        }
        let arguments = format!("{} {short}", spec.name);
        let body = format!("{template}<Function, {list}, {tags}>({values});");
        let parameters = format!("{parameters}, {parameter}");
        Source::with_body(spec.headers, template, arguments, parameters, body).define(definitions)
    }
}

/// The joined axes, in the output's memory order. The order does not matter for an elementwise
/// function, and packs need the output to be contiguous along the last axis.
pub fn in_order_of_output<const K: usize>(views: &[View<'_>; K]) -> Axes<K> {
    let output = &views[K - 1];
    if output.is_contiguous() {
        return Axes::join(output.shape, views.map(|v| v.strides));
    }
    let mut order: Vec<usize> = (0..output.shape.len()).collect();
    order.sort_by_key(|d| std::cmp::Reverse(output.strides[*d].saturating_abs()));
    let shape: Vec<i64> = order.iter().map(|d| output.shape[*d]).collect();
    let strides = views.map(|v| order.iter().map(|d| v.strides[*d]).collect::<Vec<_>>());
    Axes::join(&shape, std::array::from_fn(|k| strides[k].as_slice()))
}

/// Elements of a pack: 16 bytes of the widest dtype, but at least 4 bytes of the narrowest.
fn pack_of(bytes: &[u64]) -> u32 {
    let (most, least) = bytes.iter().fold((1, WIDEST), |(m, l), b| (m.max(*b), l.min(*b)));
    (WIDEST / most).max(4 / least).max(1) as u32
}

fn decide<const K: usize>(
    axes: &Axes<K>,
    addresses: &[u64; K],
    bytes: &[u64; K],
    pack: u32,
) -> Layout {
    let Some(last) = axes.count.checked_sub(1) else {
        return Layout::Flat { pack: 1, scalars: 0, head: 0 };
    };
    let scalars =
        (0..K - 1).filter(|k| axes.stride[*k][last] == 0).fold(0, |mask, k| mask | 1 << k);
    let moved: Vec<usize> = (0..K).filter(|k| scalars >> k & 1 == 0).collect();
    let rows = moved.iter().all(|k| axes.stride[*k][last] == 1);
    if !rows {
        return Layout::Walked { pack: 1, scalars: 0 };
    }
    let align = |k: usize, pack: u32| (u64::from(pack) * bytes[k]).min(WIDEST);
    if axes.count == 1 {
        let fits = |head: u64| {
            moved.iter().all(|k| (addresses[*k] + head * bytes[*k]).is_multiple_of(align(*k, pack)))
        };
        let n = axes.len();
        return match (0..u64::from(pack)).find(|head| fits(*head)) {
            Some(head) if n >= head + u64::from(pack) => Layout::Flat { pack, scalars, head },
            _ => Layout::Flat { pack: 1, scalars, head: 0 },
        };
    }
    // Every row of every tensor has to start on a pack boundary.
    let fits = |pack: u32| {
        axes.size[last] % i64::from(pack) == 0
            && moved.iter().all(|k| {
                let align = align(*k, pack);
                addresses[*k].is_multiple_of(align)
                    && axes.stride[*k][..last]
                        .iter()
                        .all(|s| (s.unsigned_abs().wrapping_mul(bytes[*k])).is_multiple_of(align))
            })
    };
    let mut pack = pack;
    while pack > 1 && !fits(pack) {
        pack /= 2;
    }
    Layout::Walked { pack, scalars: if pack > 1 { scalars } else { 0 } }
}

/// Makes the last axis count packs.
fn into_packs<const K: usize>(axes: &mut Axes<K>, pack: u32) {
    if let Some(last) = axes.count.checked_sub(1) {
        axes.size[last] /= i64::from(pack);
        for stride in &mut axes.stride {
            stride[last] *= i64::from(pack);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide<const K: usize>(a: &Axes<K>, addresses: &[u64; K], bytes: &[u64; K]) -> Layout {
        super::decide(a, addresses, bytes, pack_of(bytes))
    }

    fn axes<const K: usize>(shape: &[i64], strides: [&[i64]; K]) -> Axes<K> {
        Axes::join(shape, strides)
    }

    #[test]
    fn packs_are_of_16_bytes_or_of_4_of_the_narrowest() {
        assert_eq!(pack_of(&[4, 4, 4]), 4);
        assert_eq!(pack_of(&[2, 4]), 4);
        assert_eq!(pack_of(&[1, 1]), 16);
        assert_eq!(pack_of(&[1, 8]), 4);
        assert_eq!(pack_of(&[8, 8]), 2);
        assert_eq!(pack_of(&[1, 4, 4, 4]), 4);
    }

    #[test]
    fn tensors_without_gaps_are_flat_where_they_begin_alike() {
        let flat = axes(&[8, 25], [&[25, 1], &[25, 1]]);
        let bytes = [4, 4];
        let decided = |a, b| decide(&flat, &[a, b], &bytes);
        assert_eq!(decided(256, 512), Layout::Flat { pack: 4, scalars: 0, head: 0 });
        assert_eq!(decided(256 + 4, 512 + 4), Layout::Flat { pack: 4, scalars: 0, head: 3 });
        assert_eq!(decided(256 + 4, 512), Layout::Flat { pack: 1, scalars: 0, head: 0 });
        let few = axes(&[5], [&[1], &[1]]);
        let layout = decide(&few, &[256 + 4, 512 + 4], &bytes);
        assert_eq!(layout, Layout::Flat { pack: 1, scalars: 0, head: 0 });
        let none = axes(&[1, 1], [&[7, 7], &[1, 1]]);
        let layout = decide(&none, &[256, 512], &bytes);
        assert_eq!(layout, Layout::Flat { pack: 1, scalars: 0, head: 0 });
    }

    #[test]
    fn heads_count_elements_of_all_widths() {
        // A half and a float: after the first 3 elements, both tensors are aligned to a pack.
        let flat = axes(&[100], [&[1], &[1]]);
        let layout = decide(&flat, &[1024 + 2, 2048 + 4], &[2, 4]);
        assert_eq!(layout, Layout::Flat { pack: 4, scalars: 0, head: 3 });
    }

    #[test]
    fn scalars_need_no_alignment() {
        let flat = axes(&[100], [&[1], &[0], &[1]]);
        let layout = decide(&flat, &[256, 4, 512], &[4, 4, 4]);
        assert_eq!(layout, Layout::Flat { pack: 4, scalars: 2, head: 0 });
    }

    #[test]
    fn rows_have_packs_where_all_of_them_are_aligned() {
        let bias = |n: i64| {
            let axes = axes(&[10, n], [&[n, 1], &[0, 1], &[n, 1]]);
            decide(&axes, &[256, 512, 1024], &[4, 4, 4])
        };
        assert_eq!(bias(64), Layout::Walked { pack: 4, scalars: 0 });
        assert_eq!(bias(66), Layout::Walked { pack: 2, scalars: 0 });
        assert_eq!(bias(65), Layout::Walked { pack: 1, scalars: 0 });
        let column = axes(&[10, 64], [&[64, 1], &[1, 0], &[64, 1]]);
        let layout = decide(&column, &[256, 4, 1024], &[4, 4, 4]);
        assert_eq!(layout, Layout::Walked { pack: 4, scalars: 2 });
        let transpose = axes(&[10, 64], [&[1, 10], &[64, 1]]);
        let layout = decide(&transpose, &[256, 1024], &[4, 4]);
        assert_eq!(layout, Layout::Walked { pack: 1, scalars: 0 });
    }

    #[test]
    fn packs_divide_the_last_axis() {
        let mut rows = axes(&[10, 64], [&[64, 1], &[1, 0], &[128, 1]]);
        into_packs(&mut rows, 4);
        assert_eq!(rows.size[..2], [10, 16]);
        assert_eq!(rows.stride.map(|s| [s[0], s[1]]), [[64, 4], [1, 0], [128, 4]]);
    }

    #[test]
    fn the_output_says_in_which_order_elements_are_visited() {
        let view = |strides: &'static [i64]| View {
            address: 256,
            dtype: Dtype::Float32,
            shape: &[3, 5],
            strides,
        };
        let axes = in_order_of_output(&[view(&[1, 3]), view(&[1, 3])]);
        assert_eq!((axes.count, axes.size[0], axes.stride[1][0]), (1, 15, 1));
        let axes = in_order_of_output(&[view(&[1, 3]), view(&[5, 1])]);
        assert_eq!((axes.count, axes.stride[0][0], axes.stride[0][1]), (2, 1, 3));
    }
}
