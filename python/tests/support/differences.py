"""Where Ultramarine differs from mlx.core on purpose, with the reason.

Keys are patterns (as in fnmatch) over `module/test[parameters]/case`, where the module is a name; what they match is
not compared with mlx, so every row needs a test of its own elsewhere.
"""

from __future__ import annotations

DELIBERATE: dict[str, str] = {
    "create/*/empty*": "empty and empty_like are uninitialised; in mlx they are zeros",
    "create/*/asarray float64*": "asarray and from_dlpack keep float64; mlx casts it to float32",
    "interchange/*/asarray* float64 *": "as asarray float64",
    "interchange/*/from_dlpack float64 *": "as asarray float64",
    "interchange/*/from_dlpack complex128 *": "from_dlpack converts nothing; mlx makes it complex64",
    "interchange/test_given[[]producer-complex128[]]/*": "what has nothing but DLPack gives no "
    "complex64 of complex128; mlx converts it",
    "interchange/test_given[[]memoryview*/from_dlpack *": "from_dlpack takes DLPack alone; mlx takes "
    "buffers there, too",
    "interchange/test_objects[[]*[]]/from_dlpack *": "as above, and a producer's own error is reported; "
    "mlx detaches torch's tensors and raises TypeError",
    "interchange/test_objects[[]*[]]/ours @ *": "@ takes foreign arrays as other operators do; in "
    "mlx arrays alone",
    "interchange/test_objects[[]numpy*[]]/numpy* + ours": "numpy + array is an array of the "
    "promoted dtype; in mlx it is NumPy's",
    "interchange/test_objects[[]None[]]/equal None": "x == None is False; mlx raises",
    "create/*/array of range": "any sequence is taken; mlx takes lists and tuples",
    "create/*/*other endian": "NumPy arrays of the other byte order are read; mlx refuses them",
    "create/*/full by dtype": "full(dtype=) has that dtype; mlx ignores it for floats in integers",
    "dtype/*against others*/*": "a Dtype is unequal to anything else; mlx raises for None",
    "index/test_set*/with leading 1*": "values with leading axes of size 1 broadcast everywhere",
    "index/test_set[[]None[]]/*": "x[None] = v keeps the dtype of x; in mlx it takes that of v",
    "index/test_at[[]None-*/*": "as x[None] = v",
    "index/test_set[[]...[]]/*": "x[...] = v keeps the dtype of x; in mlx it takes that of v",
    "index/test_at[[]...-*/*": "as x[...] = v",
    "create/*complex128*/operator numpy scalar": "a NumPy complex128 scalar is a Python complex",
    "elementwise/test_round_and_divmod[[]*int*/round [12]": "integers rounded to decimals are "
    "themselves; mlx takes them through float32, and large ones become others",
    "elementwise/test_round_and_divmod[[]float64[]]/round [12]": "10**n is a float64; in mlx a "
    "float32, so that round(-2.6, 1) is -2.60000004",
    "reduce/test_reductions[[]logsumexp-uint*": "mlx subtracts the largest element without a "
    "sign: the exponential overflows",
    "reduce/test_reductions[[]logsumexp-bool_*": "as logsumexp of unsigned integers",
    "nn/test_softmax[[]bool_*/*not along the last": "as softmax of integers",
    "nn/test_softmax[[]*int*/*not along the last": "softmax of integers is float32; in mlx "
    "it is an integer (0, mostly) unless it is along the last axis alone",
    "scan/test_scans[[]cumsum-*float16[]]/(1025, 3) broadcast*": "running sums of 16-bit floats "
    "are kept in float32; mlx rounds each, until they no longer grow",
    "fft/test_transformed[[]irfft odd-*/jvp": "the tangent of irfft has its odd length; in mlx an even "
    "one",
    "errors/*/vjp of too many": "cotangents must be as many as outputs; mlx ignores the rest",
    "errors/*/as_strided": "shape and strides must have one length; mlx reads other memory",
    "transforms/*addmm-jvp[]]/*": "mlx leaves alpha and beta out of the derivative of addmm",
    "transforms/*addmm-grad of jvp[]]/*": "as addmm-jvp",
    "transforms/*m??-grad of jvp[]]/*": "min and max have a second derivative; mlx raises",
    "transforms/*assign-vmap of one[]]/*": "mlx assigns to wrong places along mapped axes",
    "transforms/*assign-vmap of grad[]]/*": "as assign-vmap of one",
    "create/*[[]object[]]/operator 0-d": "a NumPy object is taken for the Python number it holds",
    "dtype/test_scalars[[]bool_[]]/*np.complex64*": "a complex number is true unless it is zero",
    "create/*/arange 0, 1, 0.1": "start + i * step is rounded once; mlx adds steps up in float32",
    "conv/test_calls/*float* with complex64": "a weight may be complex; mlx drops its imaginary part",
    "matmul_einsum/test_path/*->il*": "an output index that no operand has is refused, as by einsum; mlx's "
    "einsum_path gives a path for it",
    "matmul_einsum/test_path/...->i *": "as above",
    "linalg/test_types_and_errors[[]*/dtype complex64": "decompositions take complex64, too",
    "linalg/test_systems/* with *complex64": "as above",
    "linalg/test_systems/* complex64 with *": "as above",
    "linalg/test_systems/* bool_ with float*": "the matrix is promoted as the right side is; mlx raises",
    "linalg/test_systems/* *int* with float*": "as above",
    "linalg/test_systems/* *float16 with float*": "as above",
    "linalg/test_systems/* uint64 with int*": "as above",
    "linalg/test_systems/* int* with uint64": "as above",
    "linalg/test_systems/* float16 with bfloat16": "as above",
    "linalg/test_values*/det (33, 33)": "determinants of float64 are float64; mlx's pass through float32",
    "linalg/test_norm[[]*/* of (?,) [[]-1, 0[]] *": "an axis that is named twice is an error; mlx takes it",
    "linalg/test_norm[[]int8[]]/*": "squares are summed in float32; in mlx int8 overflows",
    "linalg/test_cross[[]bool_[]]/*": "of sizes 2 and 3, too; mlx raises",
    "foreign_operators/*/on the left": "with an array of another library on the left, dtypes are "
    "promoted, so that no value is lost; mlx casts torch's to the array's dtype",
    "interchange/test_given[[]*[]]/* + ours *": "with an array of another library on the left, dtypes "
    "are promoted, so that no value is lost; mlx casts to the array's dtype",
    "foreign_operators/*/compared": "comparisons with arrays of other libraries promote the dtypes, on "
    "either side; mlx casts to the array's: array([1]) == numpy.array([1.5]) is True",
    "python_protocols/*/numpy.sum": "NumPy's reductions call the method of that name; in mlx they raise "
    "TypeError",
    "threads/*/states of threads": "a thread that has not seeded draws numbers of its own; in mlx all "
    "such threads draw the same",
    "python_protocols/*/memoryview of bfloat16": "the buffer protocol has no bfloat16, so that NumPy "
    "takes the array by __array__, with the dtype of ml_dtypes; with mlx's format NumPy refuses it",
    "create/*/*reversed": "NumPy arrays with negative strides are read; mlx refuses them",
}

# Unintended errors of mlx: a message of the C++ library instead of an explanation.
# beyond_mlx/test_wrong_calls.py tests what Ultramarine does in these cases.
ACCIDENTS = ("std::", "_Map_base::at")

# Where mlx reports that it lacks a feature, Ultramarine may have it.
LACKS = (
    "not implemented",
    "Not implemented for",
    "not yet implemented",
    "Unsupported type",
    "Currently only supports",
    "Does not yet support",
    "Can only handle",
    "must have type float32 or float64",
    "Complex inputs are not supported",
    "must promote to float32 or float64",
    "got unsupported data type",
    "boolean indices are not yet supported",
    "Cannot vmap over the sorted sequence",
    "NYI",
    "only supported on the GPU",
)

# Functions whose parameters differ from mlx's documentation, with the reason.
SIGNATURES: dict[str, str] = {
    "save_gguf": "metadata is None by default, as in mlx, whose documentation does not say so"
}
