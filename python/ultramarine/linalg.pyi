"""Linear algebra. Matrices stand in the last two axes, and leading axes are a batch.

Decompositions take float32 and float64, and beyond MLX complex64. Derivatives, which MLX does not have for most of these, are
those of textbooks: signs and phases of vectors are held, and nothing turns vectors of equal values.
"""

# Made by python/tools/make_stubs.py of the module's docstrings: change those.

from collections.abc import Sequence
from typing import Any, Literal

from ultramarine import StreamOrDevice, array

def cholesky(a: array, upper: bool = False, *, stream: StreamOrDevice = None) -> array:
    """Computes the triangular factors of symmetric (Hermitian) positive definite matrices: `a = l
    @ l.T`.

    Args:
        a (array): Matrices in the last two axes: float32, float64 or complex64.
        upper (bool): Returns the upper factors `u`, with `a = u.T @ u`.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Factors, in shape and dtype of `a`; those of other matrices have NaN.

    Raises:
        ValueError: If the matrices are not square, or of another dtype.

    Example:
        >>> mx.linalg.cholesky(mx.array([[4.0, 2.0], [2.0, 5.0]]), stream=mx.cpu)
        array([[2, 0],
               [1, 2]], dtype=float32)
    """

def cholesky_inv(a: array, upper: bool = False, *, stream: StreamOrDevice = None) -> array:
    """Computes the inverses of positive definite matrices, given their Cholesky factors.

    Args:
        a (array): Factors, as `cholesky` returns them.
        upper (bool): Takes the factors for upper ones.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Inverses of the matrices whose factors are given.

    Raises:
        ValueError: If the matrices are not square, or of another dtype.

    Example:
        >>> l = mx.linalg.cholesky(mx.array([[4.0, 0.0], [0.0, 16.0]]))
        >>> mx.linalg.cholesky_inv(l)
        array([[0.25, 0],
               [0, 0.0625]], dtype=float32)
    """

def cross(a: array, b: array, axis: int = -1, *, stream: StreamOrDevice = None) -> array:
    """Computes the cross products of vectors along an axis.

    Args:
        a (array): Array with 3 or 2 elements along the axis; of 2, the third counts as zero.
        b (array): Array like `a`; other axes are broadcast.
        axis (int): Axis of the vectors.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Products, with 3 elements along the axis.

    Raises:
        IndexError: If the axis is out of range.
        ValueError: If the axis has another size, or the shapes cannot be broadcast.

    Example:
        >>> mx.linalg.cross(mx.array([1.0, 0.0, 0.0]), mx.array([0.0, 1.0, 0.0]))
        array([0, 0, 1], dtype=float32)
    """

def det(a: array, *, stream: StreamOrDevice = None) -> array:
    """Computes the determinants of square matrices.

    Args:
        a (array): Matrices in the last two axes: float32, float64 or complex64.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Determinants, without the last two axes.

    Raises:
        ValueError: If the matrices are not square, or of another dtype.

    Example:
        >>> mx.linalg.det(mx.array([[2.0, 1.0], [0.0, 3.0]]))
        array(6, dtype=float32)
    """

def eig(a: array, *, stream: StreamOrDevice = None) -> tuple[array, array]:
    """Computes the eigenvalues and eigenvectors of square matrices.

    Args:
        a (array): Matrices in the last two axes: float32, float64 or complex64.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        tuple[array, array]: Eigenvalues in no particular order, and eigenvectors of norm 1 in
            columns; both complex64.

    Raises:
        ValueError: If the matrices are not square, or of another dtype.

    Example:
        >>> values, vectors = mx.linalg.eig(mx.array([[2.0, 0.0], [0.0, 2.0]]))
        >>> values
        array([2+0j, 2+0j], dtype=complex64)
    """

def eigh(
    a: array, UPLO: Literal["L", "U", "l", "u"] = "L", *, stream: StreamOrDevice = None
) -> tuple[array, array]:
    """Computes the eigenvalues and eigenvectors of symmetric (Hermitian) matrices.

    Args:
        a (array): Matrices in the last two axes: float32, float64 or complex64.
        UPLO (Literal["L", "U", "l", "u"]): Triangle that is read: "L" for the lower, "U" for
            the upper one.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        tuple[array, array]: Eigenvalues, which are real and ascend, and orthonormal
            eigenvectors in columns.

    Raises:
        ValueError: If the matrices are not square or of another dtype, or `UPLO` is another
            letter.

    Example:
        >>> mx.linalg.eigh(mx.array([[2.0, 0.0], [0.0, 3.0]]), stream=mx.cpu)[0]
        array([2, 3], dtype=float32)
    """

def eigvals(a: array, *, stream: StreamOrDevice = None) -> array:
    """Computes the eigenvalues of square matrices.

    Args:
        a (array): Matrices in the last two axes: float32, float64 or complex64.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Eigenvalues in no particular order; complex64.

    Raises:
        ValueError: If the matrices are not square, or of another dtype.

    Example:
        >>> mx.linalg.eigvals(mx.array([[2.0, 0.0], [0.0, 2.0]]))
        array([2+0j, 2+0j], dtype=complex64)
    """

def eigvalsh(
    a: array, UPLO: Literal["L", "U", "l", "u"] = "L", *, stream: StreamOrDevice = None
) -> array:
    """Computes the eigenvalues of symmetric (Hermitian) matrices.

    Args:
        a (array): Matrices in the last two axes: float32, float64 or complex64.
        UPLO (Literal["L", "U", "l", "u"]): Triangle that is read: "L" for the lower, "U" for
            the upper one.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Eigenvalues, which are real and ascend.

    Raises:
        ValueError: If the matrices are not square or of another dtype, or `UPLO` is another
            letter.

    Example:
        >>> mx.linalg.eigvalsh(mx.array([[2.0, 0.0], [0.0, 3.0]]), stream=mx.cpu)
        array([2, 3], dtype=float32)
    """

def inv(a: array, *, stream: StreamOrDevice = None) -> array:
    """Computes the inverses of square matrices.

    Args:
        a (array): Matrices in the last two axes: float32, float64 or complex64.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Inverses, in shape and dtype of `a`.

    Raises:
        ValueError: If the matrices are not square, or of another dtype.
        RuntimeError: When the result is evaluated, if a matrix is singular.

    Example:
        >>> mx.linalg.inv(mx.array([[2.0, 0.0], [0.0, 4.0]]))
        array([[0.5, 0],
               [0, 0.25]], dtype=float32)
    """

def lu(a: array, *, stream: StreamOrDevice = None) -> tuple[array, array, array]:
    """Factors matrices into triangular ones, with partial pivoting: `a = l[p, :] @ u`.

    Args:
        a (array): Matrices in the last two axes: float32, float64 or complex64.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        tuple[array, array, array]: The row permutation `p` (uint32), the lower triangle `l`
            with ones on its diagonal, and the upper triangle `u`.

    Raises:
        ValueError: If there are less than two dimensions, or the dtype is another.

    Example:
        >>> p, l, u = mx.linalg.lu(mx.array([[0.0, 1.0], [2.0, 3.0]]))
        >>> p
        array([1, 0], dtype=uint32)
        >>> mx.take(l, p, axis=0) @ u
        array([[0, 1],
               [2, 3]], dtype=float32)
    """

def lu_factor(a: array, *, stream: StreamOrDevice = None) -> tuple[array, array]:
    """Factors matrices as `lu`, with both triangles in one array.

    Args:
        a (array): Matrices in the last two axes: float32, float64 or complex64.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        tuple[array, array]: The triangles, without the ones on the diagonal of `l`; and the
            pivots (uint32): row i was exchanged with row pivots[i].

    Raises:
        ValueError: If there are less than two dimensions, or the dtype is another.

    Example:
        >>> lu, pivots = mx.linalg.lu_factor(mx.array([[0.0, 1.0], [2.0, 3.0]]))
        >>> pivots
        array([1, 1], dtype=uint32)
    """

def norm(
    a: array,
    /,
    ord: int | float | str | None = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Computes norms of vectors along one axis, or of matrices along two.

    `ord` is None for the root of the sum of squares. Vectors have 1, 2, inf, -inf and any other
    number p; matrices have 1, -1, 2, -2, inf, -inf, "fro" (Frobenius) and "nuc" (nuclear).

    Args:
        a (array): Array of any shape.
        ord (int | float | str | None): Order of the norm.
        axis (int | Sequence[int] | None): One axis for vectors, two for matrices; by default
            the whole array: flattened, if `ord` is None.
        keepdims (bool): Keeps the axes, with size 1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Norms; float32 for integers, bools and complex numbers.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If there are more than two axes, or vectors or matrices have no such order.

    Example:
        >>> mx.linalg.norm(mx.array([3.0, 4.0]))
        array(5, dtype=float32)
    """

def pinv(a: array, *, stream: StreamOrDevice = None) -> array:
    """Computes the Moore-Penrose pseudo-inverses of matrices, by singular values.

    Args:
        a (array): Matrices in the last two axes: float32, float64 or complex64.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Pseudo-inverses: the last two sizes are exchanged.

    Raises:
        ValueError: If there are less than two dimensions, or the dtype is another.

    Example:
        >>> mx.linalg.pinv(mx.array([[2.0], [0.0]]))
        array([[0.5, 0]], dtype=float32)
    """

def qr(a: array, *, stream: StreamOrDevice = None) -> tuple[array, array]:
    """Factors matrices into an orthonormal and an upper triangular one: `a = q @ r`, in reduced
    form.

    Args:
        a (array): Matrices of the shape (..., m, n): float32, float64 or complex64.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        tuple[array, array]: `q` of the shape (..., m, k) and `r` of the shape (..., k, n),
            where k is the smaller of m and n.

    Raises:
        ValueError: If there are less than two dimensions, or the dtype is another.

    Example:
        >>> a = mx.array([[3.0, 1.0], [4.0, 2.0], [0.0, 5.0]])
        >>> q, r = mx.linalg.qr(a)
        >>> q.shape, r.shape
        ((3, 2), (2, 2))
        >>> mx.allclose(q @ r, a, atol=1e-5)
        array(True, dtype=bool)
    """

def slogdet(a: array, *, stream: StreamOrDevice = None) -> tuple[array, array]:
    """Computes the signs and the logarithms of the absolute values of determinants.

    Args:
        a (array): Matrices in the last two axes: float32, float64 or complex64.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        tuple[array, array]: Signs (0 for a singular matrix) and logarithms (negative infinity
            for a singular matrix), without the last two axes.

    Raises:
        ValueError: If the matrices are not square, or of another dtype.

    Example:
        >>> mx.linalg.slogdet(mx.array([[1.0, 0.0], [0.0, -1.0]]))
        (array(-1, dtype=float32), array(0, dtype=float32))
    """

def solve(a: array, b: array, *, stream: StreamOrDevice = None) -> array:
    """Solves the linear equations `a @ x = b`.

    Args:
        a (array): Square matrices in the last two axes: float32, float64 or complex64.
        b (array): Right sides: a vector, or matrices in the last two axes.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Solutions `x`, in the shape of `b`, with its leading axes broadcast.

    Raises:
        ValueError: If the matrices are not square, the shapes do not fit, or the dtype is
            another.
        RuntimeError: When the result is evaluated, if a matrix is singular.

    Example:
        >>> mx.linalg.solve(mx.array([[2.0, 0.0], [0.0, 4.0]]), mx.array([2.0, 4.0]))
        array([1, 1], dtype=float32)
    """

def solve_triangular(
    a: array, b: array, *, upper: bool = False, stream: StreamOrDevice = None
) -> array:
    """Solves the linear equations `a @ x = b` for triangular matrices.

    Args:
        a (array): Square matrices in the last two axes, of which only a triangle is read.
        b (array): Right sides: a vector, or matrices in the last two axes.
        upper (bool): Reads the upper triangle instead of the lower one.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Solutions `x`, in the shape of `b`, with its leading axes broadcast.

    Raises:
        ValueError: If the matrices are not square, the shapes do not fit, or the dtype is
            another.

    Example:
        >>> mx.linalg.solve_triangular(mx.array([[2.0, 0.0], [1.0, 1.0]]), mx.array([2.0, 3.0]))
        array([1, 2], dtype=float32)
    """

def svd(a: array, compute_uv: bool = True, *, stream: StreamOrDevice = None) -> Any:
    """Computes the full singular value decomposition: `a = u[..., :k] * s @ vt[..., :k, :]`.

    Args:
        a (array): Matrices of the shape (..., m, n): float32, float64 or complex64. k is the
            smaller of m and n.
        compute_uv (bool): Computes the vectors, too.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        Any: The tuple (u, s, vt) of shapes (..., m, m), (..., k) and (..., n, n); or, without
            `compute_uv`, the array s alone. Singular values are real and descend.

    Raises:
        ValueError: If there are less than two dimensions, or the dtype is another.

    Example:
        >>> mx.linalg.svd(mx.array([[3.0, 0.0], [0.0, 2.0]]), compute_uv=False, stream=mx.cpu)
        array([3, 2], dtype=float32)
    """

def tri_inv(a: array, upper: bool = False, *, stream: StreamOrDevice = None) -> array:
    """Computes the inverses of triangular matrices.

    Args:
        a (array): Matrices in the last two axes, of which only a triangle is read.
        upper (bool): Reads the upper triangle instead of the lower one.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Inverses, in shape and dtype of `a`.

    Raises:
        ValueError: If the matrices are not square, or of another dtype.

    Example:
        >>> mx.linalg.tri_inv(mx.array([[2.0, 0.0], [0.0, 4.0]]))
        array([[0.5, 0],
               [0, 0.25]], dtype=float32)
    """
