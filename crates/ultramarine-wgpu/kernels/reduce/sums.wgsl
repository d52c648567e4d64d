// How floating sums keep what rounding loses (Knuth's exact sum of two). S is the type of a wide accumulator's part.

fn lost_part(total: S, sum: S, x: S) -> S {
  let part = sum - total;
  return (total - (sum - part)) + (x - part);
}

// Added at the end, unless there is nothing, which keeps the sign of zero, or no number.
fn regained(total: S, lost: S) -> S {
  let finite = lost - lost == S(0);
  return select(total, total + lost, lost != S(0) && finite);
}
