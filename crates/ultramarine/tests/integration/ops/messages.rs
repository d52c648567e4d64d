//! Errors name the operation that was called, and the shapes that it got.

use ultramarine::{Array, Dtype, Error, Result, addmm, broadcast_arrays, where_};

/// An operation that fails, and its message.
type Case = (fn(&Array, &Array, &Array) -> Result<Array>, &'static str);

/// Of a vector (4), a matrix (2, 3) and a stack (5, 2, 3).
const CASES: &[Case] = &[
    (
        |v, m, _| m + v,
        "[add] Shapes (2, 3) and (4,) cannot be broadcast. Make sizes equal or 1, counted from the last axis.",
    ),
    (
        |v, m, _| v - m,
        "[subtract] Shapes (4,) and (2, 3) cannot be broadcast. Make sizes equal or 1, counted from the last axis.",
    ),
    (
        |v, m, _| m.maximum(v),
        "[maximum] Shapes (2, 3) and (4,) cannot be broadcast. Make sizes equal or 1, counted from the last axis.",
    ),
    (
        |v, m, _| m.power(v),
        "[power] Shapes (2, 3) and (4,) cannot be broadcast. Make sizes equal or 1, counted from the last axis.",
    ),
    (
        |v, m, _| m.logical_xor(v),
        "[logical_xor] Shapes (2, 3) and (4,) cannot be broadcast. Make sizes equal or 1, counted from the last axis.",
    ),
    (
        |v, m, _| m.isclose(v, 0.1, 0.1, false),
        "[isclose] Shapes (2, 3) and (4,) cannot be broadcast. Make sizes equal or 1, counted from the last axis.",
    ),
    (
        |v, m, _| m.clip(v, None),
        "[maximum] Shapes (2, 3) and (4,) cannot be broadcast. Make sizes equal or 1, counted from the last axis.",
    ),
    (
        |v, m, s| where_(m, s, v),
        "[where] Shapes (2, 3), (5, 2, 3) and (4,) cannot be broadcast. Make sizes equal or 1, counted from the last axis.",
    ),
    (
        |v, m, s| where_(v, m, s),
        "[where] Shapes (4,), (2, 3) and (5, 2, 3) cannot be broadcast. Make sizes equal or 1, counted from the last axis.",
    ),
    (
        |v, m, _| m.matmul(v),
        "[matmul] Last dimension of first input with shape (2, 3) must match the dimension of second input with shape (4,). Transpose or reshape one of them.",
    ),
    (
        |v, m, _| v.matmul(m),
        "[matmul] Last dimension of first input with shape (4,) must match second to last dimension of second input with shape (2, 3). Transpose or reshape one of them.",
    ),
    (
        |_, _, s| s.matmul(&Array::ones(&[4, 3, 2], Dtype::Float32)?),
        "[matmul] Leading dimensions of shapes (5, 2, 3) and (4, 3, 2) cannot be broadcast. Make sizes equal or 1, counted from the last axis.",
    ),
    (
        |v, m, _| addmm(v, m, &m.t()?, 1.0, 1.0),
        "[addmm] Shapes (4,) and (2, 2) cannot be broadcast. Make sizes equal or 1, counted from the last axis.",
    ),
    (
        |_, m, _| m.reshape(&[4, -1]),
        "[reshape] Cannot reshape array of size 6 into shape (4, -1). Choose sizes whose product is 6.",
    ),
    (
        |_, m, _| m.reshape(&[7usize]),
        "[reshape] Cannot reshape array of size 6 into shape (7,). Choose sizes whose product is 6.",
    ),
    (
        |v, m, _| v.broadcast_to(m.shape()),
        "[broadcast_to] Cannot broadcast array of shape (4,) into shape (2, 3). Make sizes equal or 1, counted from the last axis.",
    ),
    (
        |v, m, _| Ok(broadcast_arrays(&[m, v])?.swap_remove(0)),
        "[broadcast_arrays] Shapes (2, 3) and (4,) cannot be broadcast. Make sizes equal or 1, counted from the last axis.",
    ),
    (
        |_, m, _| m.sum(2),
        "[sum] Invalid axis 2 for array with 2 dimensions. Use an axis from -2 to 1.",
    ),
    (
        |_, m, _| m.mean(-3),
        "[mean] Invalid axis -3 for array with 2 dimensions. Use an axis from -2 to 1.",
    ),
    (
        |_, m, _| m.std([0, 0], 0),
        "[std] Duplicate axes detected in reduction. Name each axis once.",
    ),
    (
        |_, m, _| m.softmax(2..4, false),
        "[softmax] Invalid axis 2 for array with 2 dimensions. Use an axis from -2 to 1.",
    ),
    (
        |_, m, _| m.argmax(5),
        "[argmax] Invalid axis 5 for array with 2 dimensions. Use an axis from -2 to 1.",
    ),
    (
        |_, m, _| m.expand_dims(..),
        "[expand_dims] Expected the positions of the new axes, got `..`. Pass their numbers.",
    ),
    (
        |v, _, _| v.matrix_transpose(),
        "[matrix_transpose] Expected at least 2 dimensions, got 1. Reshape or expand the array.",
    ),
];

#[test]
fn operations_and_shapes_are_named() -> Result<()> {
    let of = |shape: &[usize]| Array::ones(shape, Dtype::Float32);
    let (v, m, s) = (of(&[4])?, of(&[2, 3])?, of(&[5, 2, 3])?);
    for (f, wanted) in CASES {
        assert_eq!(f(&v, &m, &s).err().map(|e| e.to_string()).as_deref(), Some(*wanted));
    }
    Ok(())
}

/// Messages know the line of the call if backtraces are on and there is debug information.
#[test]
fn the_line_is_the_programs() -> Result<()> {
    let (x, y) = (Array::ones(&[2], Dtype::Float32)?, Array::ones(&[3], Dtype::Float32)?);
    for error in [(&x * 2.0 + &y).err(), x.sum(1).err(), x.matmul(&y).err()] {
        let Some(Error::Value(message) | Error::Index(message)) = error else {
            panic!("{error:?}")
        };
        if let Some(line) = message.line() {
            assert!(line.contains("messages.rs"), "{line}");
            assert!(format!("{message:?}").ends_with(&line), "{message:?}");
        }
        assert!(!message.to_string().contains("messages.rs"), "{message}");
    }
    Ok(())
}
