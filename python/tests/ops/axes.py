"""Shapes, layouts and axes for functions along axes."""

from support.harness import LAYOUTS

SHAPES = [(), (1,), (7,), (0,), (3, 0), (4, 5), (2, 3, 4), (37, 67), (3, 1025), (1025, 3)]


def axes_of(ndim: int) -> list:
    single = [None, *range(-ndim, ndim)]
    return single + ([(0, 1), (-1, 0), ()] if ndim > 1 else [()])


def cases_over(shapes: list, *more: list) -> list:
    out = []
    for shape in shapes:
        for layout in LAYOUTS if shape else LAYOUTS[:1]:
            for axis in axes_of(len(shape)):
                out.append((shape, layout, axis))
    return out
