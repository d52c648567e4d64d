"""Convolutions."""

from .case import Case, case, real

CASES: list[Case] = [
    case("conv1d", lambda um, x, w: um.conv1d(x, w, stride=2, padding=1), real(2, 5, 2), real(3, 3, 2)),
    case("conv1d, in groups", lambda um, x, w: um.conv1d(x, w, groups=2, dilation=2), real(1, 5, 4), real(6, 2, 2)),
    case("conv1d, depthwise", lambda um, x, w: um.conv1d(x, w, groups=3, padding=2), real(1, 4, 3), real(3, 3, 1)),
    case("conv2d", lambda um, x, w: um.conv2d(x, w, (1, 2), 1, (2, 1)), real(1, 4, 3, 2), real(2, 2, 3, 2)),
    case("conv3d", lambda um, x, w: um.conv3d(x, w, padding=(0, 1, 0)), real(1, 2, 2, 3, 1), real(2, 1, 2, 2, 1)),
    case("conv_transpose1d", lambda um, x, w: um.conv_transpose1d(x, w, 2, 1, 2, 1), real(1, 3, 2), real(2, 2, 2)),
    case("conv_transpose1d, in groups", lambda um, x, w: um.conv_transpose1d(x, w, 2, groups=2), real(1, 3, 4), real(2, 2, 2)),
    case("conv_transpose2d", lambda um, x, w: um.conv_transpose2d(x, w, (2, 1), 3), real(1, 4, 5, 1), real(2, 2, 3, 1)),
    case("conv_transpose3d", lambda um, x, w: um.conv_transpose3d(x, w, 2), real(1, 1, 2, 2, 1), real(1, 2, 1, 2, 1)),
    case("conv_general", lambda um, x, w: um.conv_general(x, w, 2, ([-1, 2], [3, -1]), 2, [2, 3], 2, True), real(1, 3, 4, 4), real(4, 2, 2, 2)),
    case("convolve", lambda um, a, v: um.convolve(a, v), real(5), real(3)),
    case("convolve, the middle", lambda um, a, v: um.convolve(a, v, "same"), real(3), real(4)),
    case("convolve, the overlap", lambda um, a, v: um.convolve(a, v, "valid"), real(5), real(3)),
]  # fmt: skip

EXEMPT: dict[str, str] = {}
