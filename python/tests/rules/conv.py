"""Convolutions."""

from .case import Case, case, real

CASES: list[Case] = [
    case("conv1d", lambda um, x, w: um.conv1d(x, w, 2, 1), real(2, 6, 3), real(2, 3, 3)),
    case("conv1d, groups", lambda um, x, w: um.conv1d(x, w, groups=2), real(1, 5, 4), real(2, 2, 2)),
    case("conv1d, dilated", lambda um, x, w: um.conv1d(x, w, dilation=2), real(1, 7, 2), real(2, 2, 2)),
    case("conv2d", lambda um, x, w: um.conv2d(x, w, (2, 1), (1, 0)), real(1, 5, 4, 2), real(2, 3, 2, 2)),
    case("conv3d", lambda um, x, w: um.conv3d(x, w), real(1, 3, 3, 2, 2), real(1, 2, 2, 2, 2)),
    case("conv_transpose1d", lambda um, x, w: um.conv_transpose1d(x, w, 2, 1), real(1, 4, 3), real(2, 3, 3)),
    case("conv_transpose2d", lambda um, x, w: um.conv_transpose2d(x, w, 2), real(1, 2, 3, 2), real(2, 2, 2, 2)),
    case("conv_transpose3d", lambda um, x, w: um.conv_transpose3d(x, w), real(1, 2, 2, 2, 1), real(1, 2, 2, 2, 1)),
    case("conv_general", lambda um, x, w: um.conv_general(
        x, w, stride=(1, 2), padding=([1, 0], [2, 1]), kernel_dilation=(2, 1),
        input_dilation=(1, 2), flip=True), real(1, 4, 3, 2), real(2, 2, 2, 2)),
    case("convolve", lambda um, x, v: um.convolve(x, v), real(5), real(3)),
    case("convolve, same", lambda um, x, v: um.convolve(x, v, "same"), real(5), real(3)),
]  # fmt: skip
