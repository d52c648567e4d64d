"""Where Ultramarine differs from mlx.core on purpose in generated cases, with the reason."""

from __future__ import annotations

from .rows import Row, empty, narrower_updates, not_finite, of, whole, written

# Differences on purpose in generated cases.
PARITY: list[Row] = [
    Row(
        "Dtype DtypeCategory",
        "a dtype's text begins with the package's name",
        message="ultramarine",
    ),
    Row(
        "*",
        "stream and equal_nan may stand where mlx's documentation has them; mlx itself refuses "
        "them there",
        written(
            r", (mx\.cpu|mx\.default_stream\(mx\.cpu\)|mx\.Device\(mx\.cpu, 0\)|"
            r"mx\.default_device\(\)|None|True|False)(, \w+=[^=]*)?\)$"
        ),
        r"^(gives a value|raises (ValueError|RuntimeError)).* mlx (raises )?TypeError: \w+\(\): incompatible",
    ),
    Row(
        "*",
        "an integer is no stream; mlx takes the value of a DeviceType",
        message="^raises TypeError.*expected a Stream, Device, DeviceType or None, got (int|bool)",
    ),
    Row(
        "*",
        "of an integer beyond 64 bits the error is Python's own",
        written(r"10\*\*30|2\*\*(31|40|63|64)"),
        r"^raises (OverflowError|ValueError\('Converting).* mlx TypeError: \w+\(\): incompatible",
    ),
    Row(
        "*",
        "an array is no stream; mlx converts it to an integer, and takes the value of a DeviceType",
        message="^raises TypeError.*expected a Stream, Device, DeviceType or None, got array",
    ),
    Row(
        "*",
        "beside bytes, which are arrays of uint8, Python's numbers and NumPy's are weak; in mlx beside its own "
        "arrays alone",
        written(r"\bb'"),
        r"dtype uint8, mlx has int\d+|^raises ValueError\('Converting -?\d+ to uint8 would result in overflow",
    ),
    Row(
        "array.at.subtract",
        "updates get the dtype of the array before they are subtracted; mlx negates unsigned ones in their own",
        narrower_updates,
        "^result",
    ),
    Row(
        "array asarray",
        "an imaginary number is True, as in NumPy; mlx drops the imaginary part",
        written(r"\dj.*bool_"),
        "^result.*True_, mlx has .*False_",
    ),
    Row(
        "random.randint",
        "bounds of bool are integers, rounded towards zero; mlx makes a fraction True",
        written(r"randint\((low=)?-?(0\.\d|\d+, ).*bool_"),
        "^result",
    ),
    Row(
        "arange random.permutation",
        "NumPy's integers are bounds, too",
        written(r"np\.int"),
        "^gives a value, mlx raises TypeError: (arange|permutation)",
    ),
    Row(
        "array asarray",
        "sequences in sequences may be tuples; mlx takes lists there",
        message="Invalid type tuple",
    ),
    Row("asarray from_dlpack", "float64 is kept; mlx casts it to float32", message="dtype float64"),
    Row(
        "from_dlpack asarray",
        "negative strides are read; mlx refuses them",
        message="negative strides",
    ),
    Row(
        "array asarray astype array.astype full full_like pad slice_update",
        "what C++ leaves undefined, casts of what the dtype cannot hold, is the nearest that it "
        "can, and zero for NaN",
        message=r"^result(\[[\d, ]*\])*: np\.u?int",
    ),
    Row(
        "array.__array__",
        "__array__ converts to the dtype asked for; mlx does not",
        written("dtype"),
    ),
    Row("array.__getstate__", "a pickled array keeps float64", of("float64")),
    Row(
        "array.__getitem__ array.__setitem__ array.at.* take",
        "an index out of bounds is an IndexError, as of Python's sequences; mlx raises another "
        "error or reads what is there",
        message="IndexError",
    ),
    Row(
        "array.__setitem__ array.at.*",
        "x[None], x[...] and x[()] keep the dtype of x and take values with leading axes of size "
        "1; in mlx the value replaces x",
        whole,
    ),
    Row(
        "array.at.* array.__setitem__",
        "an update of nothing may have any shape that broadcasts",
        empty,
        "gives a value, mlx raises ValueError",
    ),
    Row(
        "logsumexp array.logsumexp",
        "mlx subtracts the largest integer in its dtype, which overflows",
        of("uint", "int", "bool"),
    ),
    Row(
        "softmax",
        "softmax of integers is float32; in mlx it is an integer (0, mostly) unless it is along "
        "the last axis alone",
        of("uint", "int", "bool"),
        "dtype",
    ),
    Row(
        "as_strided fft.stft fft.istft",
        "arrays of any layout have strides; mlx wants rows",
        message="row contiguous",
    ),
    Row(
        "fft.*",
        "of a size and an axis that are both wrong, the size is reported",
        lambda case: case.bent or "-1" in case.code,
        "raises ValueError.* mlx IndexError",
    ),
    Row("linspace", "num may be None, as mlx's documentation says", written("None")),
    Row(
        "full full_like",
        "full(dtype=) has that dtype; mlx ignores it for some values",
        message="dtype",
    ),
    Row("kron", "the Kronecker product with nothing is nothing", empty, "cannot be empty"),
    Row(
        "left_shift right_shift bitwise_left_shift bitwise_right_shift array.__*shift__",
        "what C++ leaves undefined, shifts by a negative number or too many bits, gives 0 "
        "(-1 for a negative number to the right)",
        message=r"^result(\[[\d, ]*\])*: np\.u?int",
    ),
    Row("isclose allclose", "numbers are taken, too", message="TypeError"),
    Row(
        "isclose allclose",
        "the distance of integers does not wrap around",
        of("int", "uint"),
        "result",
    ),
    Row(
        "take",
        "a negative index of the flattened array counts from its end; mlx raises",
        written(r"take\(.*, -\d"),
    ),
    Row(
        "take",
        "another axis than that of the indices may be empty; mlx refuses all arrays without elements",
        empty,
        "^gives a value, mlx raises ValueError: .take. Cannot do a non-empty take from an array",
    ),
    Row("take_along_axis", "mlx reads beyond an empty array", empty, "non-empty take"),
    Row(
        "save_safetensors",
        "of two things that are wrong, either may be reported",
        written("1: x.*1}"),
    ),
    Row(
        "export_function import_function exporter",
        "arguments by keyword are told from positional ones, and by their names; mlx takes the one for "
        "the other where there are as many in all",
        message="No imported function found|twice with the same signature",
    ),
    Row(
        "export_function",
        "slices follow the sizes of a shapeless function",
        message="Slice cannot infer output shapes",
    ),
    Row(
        "get_printoptions DeviceType DtypeCategory",
        "device types and categories of dtypes are no Enum: they cannot be listed or called",
        message="not iterable|instances",
    ),
    Row(
        "nan_to_num arange",
        "an array of several elements in place of a number is a ValueError, as of float() and int(); mlx "
        "finds that none of its overloads fits",
        lambda case: case.bent,
        r"raises ValueError.*Only length-1 arrays.* mlx TypeError: \w+\(\): incompatible",
    ),
    Row(
        "concatenate stack",
        "an empty mapping is a sequence of no arrays; mlx finds that none of its overloads fits",
        written(r"(concatenate|stack)\(\{\}"),
        r"raises ValueError\('\[(concatenate|stack)\] No arrays.* mlx TypeError",
    ),
    Row(
        "arange",
        "a number beyond 64 bits is told as such; mlx finds that none of its overloads fits",
        written(r"10\*\*30"),
        "raises ValueError.*would result in overflow.* mlx TypeError",
    ),
    Row(
        "array.reshape",
        "a sequence among the sizes is a TypeError; mlx takes the first for the shape and ignores the others",
        written(r"reshape\([\[(].*[\])], "),
        "^raises TypeError.*expected an int or a sequence of ints.* mlx (ValueError|gives)",
    ),
    Row(
        "conv* gather_qmm",
        "the number of axes is looked at first; mlx indexes shapes before",
        lambda case: case.bent,
        "raises ValueError.* mlx IndexError: SmallVector",
    ),
    Row(
        "qqmm gather_qqmm",
        "the number of axes is looked at before the dtype",
        message="^raises IndexError.*at least 1 dimension.* mlx ValueError.*Only real floating types",
    ),
    Row(
        "argmin argmax array.argmin array.argmax",
        "axes are looked at before any size",
        empty,
        "^raises IndexError.* mlx ValueError.*zero size array",
    ),
    Row(
        "linalg.cross",
        "of bools, of sizes 2 and 3, too; mlx raises",
        of("bool"),
        "^gives a value, mlx raises ValueError.*Not supported for bool",
    ),
    Row(
        "arange",
        "an array of one element is a number; mlx finds that none of its overloads fits",
        written(r"mx\.array\("),
        r"^gives a value, mlx raises TypeError: arange\(\): incompatible",
    ),
    Row(
        "random.uniform",
        "the dtype is looked at before the shape",
        written("float64"),
        "^raises RuntimeError.*Unsupported type.* mlx ValueError",
    ),
    Row(
        "qqmm gather_qqmm",
        "a stream is looked at before the device; mlx says that it has no GPU",
        written("stream="),
        "^raises TypeError.*expected a Stream.* mlx ValueError: .default_stream",
    ),
    Row(
        "array.at.subtract",
        "updates of bool are subtracted as numbers; mlx negates them, which it does not do to bool",
        of("bool"),
        "^gives a value, mlx raises ValueError: .negative. Not supported for bool",
    ),
    Row(
        "array.at.subtract",
        "unsigned updates are subtracted in the array's dtype; mlx negates them in their own, where they wrap",
        of("uint"),
        r"^result(\[[\d, ]*\])*: np\.(float|int)",
    ),
    Row(
        "var std array.var array.std",
        "a negative ddof is an error; mlx divides by more than there is",
        message="^raises ValueError.*ddof must not be negative.* mlx gives",
    ),
    Row(
        "softmax",
        "of float64 it is computed in float64; mlx's precise=True passes through float32",
        lambda case: of("float64")(case) and "precise=True" in case.code,
        r"^result(\[[\d, ]*\])*: np\.float64",
    ),
    Row(
        "erfinv",
        "of float64 it is computed in float64; mlx's passes through float32",
        of("float64"),
        r"^result(\[[\d, ]*\])*: np\.float64",
    ),
    Row(
        "meshgrid",
        "indexing may be None, as mlx's documentation says",
        written("None"),
        r"^gives a value, mlx raises TypeError",
    ),
    Row(
        "addmm",
        "c is broadcast to the product's shape; mlx gives the shape that both broadcast to",
        lambda case: not case.bent,
        "^raises ValueError.*input c must broadcast.* mlx gives",
    ),
    Row(
        "can_cast",
        "what is no dtype is a TypeError; mlx raises ValueError",
        message="raises TypeError.*expected an array or a Dtype.* mlx ValueError",
    ),
    Row(
        "linalg.det linalg.slogdet linalg.solve",
        "of float64 they are computed in float64; mlx's pass through float32",
        of("float64"),
        r"^result(\[[\d, ]*\])*: np\.float64",
    ),
    Row(
        "array.__eq__ array.__ne__ array.__lt__ array.__le__ array.__gt__ array.__ge__",
        "comparisons with NumPy's numbers promote the dtypes; mlx casts them to the array's",
        written(r"np\.(float|u?int)"),
        r"^result(\[[\d, ]*\])*: np\.(True|False)",
    ),
    Row(
        "linalg.norm matrix_norm",
        "squares of integers do not wrap around",
        of("int", "uint"),
        "result",
    ),
    Row(
        "linalg.norm matrix_norm",
        "an axis that is named twice is an error, as in NumPy; mlx takes some of these",
        message="^raises ValueError.*Duplicate axes",
    ),
    Row(
        "matrix_norm",
        "an axis out of range is an error; mlx takes some of a vector's",
        lambda case: len(case.shapes[0]) < 2,
        "^raises IndexError.*Invalid axis.* mlx gives",
    ),
    Row(
        "linalg.eigh linalg.eigvalsh",
        "UPLO is one of two letters, as in NumPy; mlx takes any text for L",
        message="^raises ValueError.*UPLO must be 'L' or 'U'.* mlx gives",
    ),
    Row(
        "logsumexp array.logsumexp",
        "of float64 it is computed in float64; mlx's exponential is float32's",
        of("float64"),
        r"^result(\[[\d, ]*\])*: np\.float64",
    ),
    Row(
        "linalg.norm matrix_norm",
        "of a wrong axis and a wrong dtype, either may be reported",
        message="raises IndexError.* mlx ValueError: .linalg::svd",
    ),
    Row(
        "linalg.solve",
        "a vector is one right-hand side for all matrices, as in NumPy",
        message="take_along_axis",
    ),
    Row("linalg.cross", "axes are aligned from the end", message="not the same axis"),
    Row(
        "einsum_path", "an output of an index that no input has is an error", message="einsum_path"
    ),
    Row("add", "a number that the array's integers do not hold is an error", message="overflow"),
    Row(
        "array.at.* array.__setitem__",
        "values with leading axes of size 1 broadcast everywhere",
        message=r"Cannot broadcast array of shape \((1, ?)+\d",
    ),
    Row(
        "array.__setitem__",
        "an index takes what it gives, also where slices stand between integers and index arrays; "
        "mlx places these axes otherwise when it assigns",
        written(r"operator\.getitem\("),
        "^gives a value, mlx raises ValueError.*(cannot be broadcast|Cannot broadcast)",
    ),
    Row(
        "prod cumprod cumulative_prod array.prod array.cumprod",
        "a product of complex numbers that overflows is another of the infinities and NaN",
        of("complex"),
        "nan|inf",
    ),
    Row("from_dlpack", "NumPy's scalars have no DLPack", message="expected an object"),
    Row("nan_to_num", "complex numbers are refused", of("complex"), "Does not yet support"),
    Row("repeat", "the number is looked at before the axis", message="cannot be negative"),
    Row(
        "searchsorted",
        "in a sequence that is not sorted any place is right",
        written(r"searchsorted\(x,"),
        "result",
    ),
    Row(
        "fast.cross_entropy",
        "a target beyond the classes is held to them; mlx reads what is there",
        written(r"mx\.array\(\[1\.5, 2\.5\]\), "),
        "^result",
    ),
    Row(
        "vecdot",
        "an axis is counted in the array of more axes",
        message=r"axis -?\d+ is out of bounds|axis is out of bounds|must have the same size along axis|must have one size in both.* mlx gives",
    ),
    Row(
        "vecdot",
        "the axis has a name, as mlx's documentation says; mlx takes it without",
        message="takes 2 positional arguments",
    ),
    Row("array.__index__", "bool is an index, as Python's is", of("bool"), "gives a value"),
    Row(
        "power pow array.__pow__ array.__rpow__ array.__ipow__",
        "a power of a complex number that overflows is another of the infinities and NaN, and a "
        "large one has a few units more in its last place",
        message="real|imag",
    ),
    Row(
        "convolve conv1d conv2d conv3d conv_general conv_transpose*",
        "convolutions of complex numbers have an imaginary part; mlx drops it",
        of("complex"),
        "imag",
    ),
    Row(
        "conv1d conv2d conv3d conv_general",
        "a kernel that is longer than the input is an error; with a stride, mlx divides a "
        "negative length, truncates to one and reads beyond the input",
        message="Spatial dimensions",
    ),
    Row(
        "conv_transpose1d conv_transpose2d conv_transpose3d",
        "padding beyond the kernel cuts the result, as in torch; mlx cuts the input before its "
        "stride is applied",
        written("padding|, [0-9(]"),
        "shape|Spatial",
    ),
    Row(
        "addmm",
        "a product may be empty; mlx forgets its columns",
        empty,
        "^gives a value, mlx raises ValueError: Cannot broadcast",
    ),
    Row(
        "addmm",
        "c counts for the dtype, with a beta of 0, too",
        written("beta=0"),
        "^gives a value, mlx raises ValueError: .matmul. Only inexact types",
    ),
    Row(
        "addmm",
        "integers beside a complex c are converted to its dtype, as beside a float c; mlx multiplies them before",
        lambda case: of("complex")(case) and of("int", "uint", "bool")(case),
        "^gives a value, mlx raises ValueError: .matmul. Only inexact types",
    ),
    Row(
        "addmm",
        "beside a complex c products are complex64; in mlx they have the dtype of the factors",
        lambda case: of("complex")(case) and of("float16", "bfloat16")(case),
        r"^result\.(real|imag)",
    ),
    Row("addmm", "NaN times a complex number is NaN in both parts", of("complex"), "nan"),
    Row(
        "broadcast_shapes array.transpose",
        "what is no integer is a TypeError; mlx raises ValueError",
        message="raises TypeError",
    ),
    Row("Dtype", "a dtype can be copied and pickled", written("copy|pickle")),
    Row(
        "round array.round",
        "integers rounded to decimals are themselves; mlx takes them through float32",
        of("int", "uint"),
    ),
    Row(
        "roll",
        "shifts along one axis add up, of a sequence of one axis, too; mlx takes the first there",
        written(r"roll\(\w+, [(\[]-?\d+, .*, [(\[]-?\d+,?[)\]]"),
    ),
    Row(
        "mean var std median logsumexp linalg.norm matrix_norm array.mean array.var array.std "
        "array.logsumexp",
        "of 16-bit floats they are computed in float32; in mlx sums and squares beyond 65504 are infinite",
        of("float16"),
        "inf",
    ),
    Row("arange", "without a start, as None, it counts from 0", written("None")),
    Row(
        "cummax cummin array.cummax array.cummin",
        "NaN stays; mlx forgets it in 16-bit floats",
        of("float16", "bfloat16"),
        "nan",
    ),
    Row("squeeze array.squeeze", "all axes are looked at before any size", message="IndexError"),
    Row("device_count", "a Device tells its type", written(r"Device\(")),
    Row("iinfo", "bits are reported of integers, too", written("bits")),
    Row("pad", "what is empty along one axis is padded along others", empty, "gives a value"),
    Row("reshape array.reshape", "a size of -2 is an error; mlx lets it pass for nothing", empty),
    Row("save_safetensors", "float64 can be stored", of("float64"), "invalid dtype"),
    Row(
        "save_gguf",
        "bfloat16, float64 and int64 can be stored",
        of("bfloat16", "float64", "int64"),
        "mlx raises RuntimeError: .*dtype (bfloat16|float64|int64) is not supported",
    ),
    Row(
        "save_gguf",
        "arrays of any layout can be stored, and empty ones as metadata",
        message="mlx .*(only serialize row-major|save non contiguous|save empty) arrays",
    ),
    Row(
        "default_stream Stream",
        "a stream has an index",
        written("index"),
    ),
    Row(
        "grad value_and_grad vmap compile checkpoint custom_function",
        "gradients and results have the classes of lists and dictionaries that they are gradients of "
        "or that were returned, and functions get copies of these classes; mlx makes plain ones",
        written("type\\("),
    ),
    Row(
        "grad value_and_grad",
        "a container that is passed twice is differentiated in each place apart; in mlx the last "
        "place takes all",
        written("\\] \\* 2"),
        "result",
    ),
    Row(
        "custom_function",
        "a rule that gives too few or too many arrays, or one of another shape, is refused; mlx takes "
        "these, and gives wrong gradients or ends the process",
        message="raises ValueError",
    ),
    Row(
        "vmap",
        "the axes of an only argument may stand in a tuple, as those of several do: "
        "in_axes=({'a': 0},); lists and tuples of axes stand for each other",
        written("in_axes=(\\(\\{|\\[)"),
        "gives a value, mlx raises ValueError",
    ),
    Row(
        "vmap",
        "an output whose axis is None is not repeated; mlx puts the axis last",
        written("out_axes=.*None"),
        "shape",
    ),
    Row(
        "fast.gated_delta_update",
        "mlx indexes shapes before it looks at them",
        message="mlx IndexError: (SmallVector|\\[squeeze\\])",
    ),
    Row(
        "fast.gated_delta_update",
        "mlx does not look at all shapes",
        message="expected.* mlx gives",
    ),
    Row(
        "quantize",
        "a tuple, as mlx's documentation says; mlx returns a list",
        written("^mx"),
        r"(?s)^result: \(.* mlx has \[",
    ),
    Row(
        "quantize",
        "a group with an infinity or NaN has no scale, and its words say nothing",
        not_finite,
        r"^result\[0\](\[[\d, ]*\])*: np\.uint32",
    ),
    Row(
        "quantize dequantize quantized_matmul gather_qmm qqmm gather_qqmm",
        "any number of groups, and matrices without elements; mlx wants 32 elements of 4 bits, and rows",
        message="mlx raises ValueError: .(reshape|argmin)",
    ),
    Row(
        "quantized_matmul gather_qmm qqmm gather_qqmm",
        "group size and bits are those of the mode; mlx takes any that fit the words",
        message="quantization requires",
    ),
    Row(
        "quantized_matmul",
        "of an x without axes and scales of a wrong dtype, either may be reported",
        message="^raises IndexError.*x must have at least 1 dimension.* mlx ValueError: .quantized_matmul. Scale type",
    ),
    Row(
        "gather_qmm",
        "a global scale may be one for all matrices, without indices, too",
        message="one entry per expert|Global scale is not supported without indices",
    ),
    Row(
        "dequantize",
        "with a global scale the dtype that was asked for; mlx gives float32",
        message="dtype .*, mlx has float32",
    ),
    Row(
        "quantized_matmul gather_qmm",
        "a vector or a matrix is multiplied by all matrices; mlx takes the first",
        lambda case: len(case.shapes) > 1 and len(case.shapes[0]) < 3 < 1 + len(case.shapes[1]),
        "^result: shape",
    ),
    Row(
        "distributed.is_available",
        "mlx's wheel has a ring of its own beside MPI",
        message="False, mlx has True",
    ),
]
