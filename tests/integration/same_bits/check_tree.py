#!/usr/bin/env python3
"""check_tree.py FOLDER VIRTUAL_RANKS ACCUMULATE: the averages in FOLDER are those of the tree of sums, to the bit.

same_bits_program --write leaves there, as plain f32: leaf-UPDATE-VIRTUAL_RANK-BATCH, the gradients of one backward
pass, and average-UPDATE-RANK, those that a process has before the optimizer's step.
"""
import pathlib
import sys

import numpy

folder, virtual_ranks, accumulate = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])


def read(name):
    return numpy.fromfile(folder / name, dtype=numpy.float32)


def tree(leaves):
    """The sum of the first m, plus that of the rest; m is the largest power of two below their number."""
    if len(leaves) == 1:
        return leaves[0]
    m = 1
    while 2 * m < len(leaves):
        m *= 2
    return tree(leaves[:m]) + tree(leaves[m:])


def one_after_another(terms):
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def differing(a, b):
    """In how many bit patterns they differ."""
    return int(numpy.count_nonzero(a.view(numpy.uint32) != b.view(numpy.uint32)))


failed = False
other_sums = 0
for update in range(2):
    leaves = [one_after_another([read(f"leaf-{update}-{v}-{micro}") for micro in range(accumulate)])
              for v in range(virtual_ranks)]
    expected = tree(leaves) / numpy.float32(virtual_ranks)
    other_sums += differing(one_after_another(leaves) / numpy.float32(virtual_ranks), expected)
    averages = sorted(folder.glob(f"average-{update}-*"))
    if not averages or not numpy.isfinite(expected).all() or not expected.any():
        print(f"update {update}: {len(averages)} averages, or gradients that show nothing")
        failed = True
    for path in averages:
        average = read(path.name)
        if average.shape != expected.shape:
            print(f"{path.name}: {average.size} numbers, expected {expected.size}")
            failed = True
        elif wrong := differing(average, expected):
            where = int(numpy.flatnonzero(average.view(numpy.uint32) != expected.view(numpy.uint32))[0])
            print(f"{path.name}: {wrong} of {expected.size} numbers differ, the first is number {where}: "
                  f"{average[where]!r}, expected {expected[where]!r}")
            failed = True
    print(f"update {update}: {len(averages)} processes have the tree's average of {expected.size} numbers"
          if not failed else f"update {update}: wrong")
if virtual_ranks > 4 and other_sums == 0:
    print("sums in another order have the same bits: these gradients show nothing")
    failed = True
else:
    print(f"summed one after another, {other_sums} numbers would differ")
sys.exit(failed)
