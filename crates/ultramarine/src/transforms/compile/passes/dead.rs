//! Dead code: steps that no result needs.

use super::Graph;

/// Drops steps that lead to no result.
pub(super) fn drop_unused(graph: &mut Graph) {
    let mut wanted = vec![false; graph.steps.len()];
    graph.outputs.iter().for_each(|o| wanted[*o as usize] = true);
    for i in (0..graph.steps.len()).rev() {
        if wanted[i] {
            graph.steps[i].operands.iter().for_each(|x| wanted[*x as usize] = true);
        }
    }
    let mut each = wanted.into_iter();
    // A step that is dropped stands for any: nobody asks for it.
    graph.rewrite(|_, _| if each.next() == Some(true) { None } else { Some(u32::MAX) });
}
