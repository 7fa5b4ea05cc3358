"""Pickles of one value of each kind, in every protocol, with what they hold.

    python3 generate.py > numpy2.txt      # once with numpy 1 and once with numpy 2: they name things differently

A line: name, protocol, pickle (base64), value as text. In the text numbers of floats are their bits, str and
bytes are hexadecimal, arrays are type, shape and row-major little-endian bytes: nothing is left to formatting. "=": as in the line before.
"""
import base64
import collections
import pickle
import sys

import numpy as np

from show import text

shared = ["twice"]
attributed = collections.OrderedDict([("weight", 1), ("bias", 2)])
attributed._metadata = collections.OrderedDict([("", {"version": 1})])
counting = np.arange(24)
values = {
    "none": None,
    "bools": [True, False],
    "ints": [0, 1, 255, 256, 65535, 65536, -1, -128, -129, 2**31 - 1, 2**31, -2**31, -2**31 - 1, 2**63 - 1, -2**63],
    "floats": [0.0, -0.0, 1.5, -2.25e-300, 1e308, float("inf"), float("-inf"), float("nan"), 0.1],
    "strs": ["", "a", "line\nbreak", "back\\slash \\u0041", "bl\u00fcte \u82b1 \U0001f33c", "lone \ud800", "x" * 260],
    "bytes": [b"", b"a", bytes(range(256)), b"x" * 260],
    "bytearrays": [bytearray(), bytearray(b"ab\xff"), bytearray(b"x" * 260)],
    "small_lists": [[], [1], [[2], [[3]]]],
    "lists": [[None] * 1005],
    "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ((), ((),))],
    "small_dicts": [{}, {"a": 1}, {b"b": 2, 3: 4, (5, "x"): [6], None: 7, True: 8, 2.5: 9}],
    "dicts": [dict.fromkeys(range(1002))],
    "ordered": [collections.OrderedDict(), collections.OrderedDict([("b", 1), ("a", 2)]), attributed],
    "sets": [set(), {1, 2, 3}, {"a", (1, 2)}, frozenset(), frozenset({4, 5})],
    "shared": [shared, shared, (shared, "again"), {"key": shared}],
    "array_u1": np.arange(24, dtype="u1").reshape(2, 3, 4),
    "array_types": [np.array([1, 3]).astype(t) for t in ("b1", "u1", "i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f4", "<f8")],
    "array_big_endian": [np.array([1, 515]).astype(t) for t in (">u2", ">i2", ">u4", ">i4", ">u8", ">i8", ">f4", ">f8")],
    "array_fortran": [np.asfortranarray(counting.astype("<i4").reshape(2, 3, 4)), np.asfortranarray(counting.astype(">f8").reshape(4, 6)),
                      np.asfortranarray(counting.astype("u1"))],
    "array_shapes": [np.zeros((0,), "f4"), np.zeros((3, 0, 2), "i8"), np.array(7, "i4"), np.zeros((1,) * 20, "u1")],
    "array_shared": [counting.astype("u1")] * 2,
    "array_views": [counting.astype("<i2")[::2], counting.astype("<i2").reshape(4, 6).T[1:3]],
    "array_readonly": np.frombuffer(b"\x01\x02\x03\x04", "<u2"),
    "scalars": [np.bool_(True), np.uint8(200), np.int8(-3), np.int64(-2**63), np.uint64(7), np.float32(1.5), np.float64(-0.1),
                np.array([513], ">u2")[0], np.uint32(2**32 - 1)],
    "cifar": {b"data": np.arange(6, dtype="u1").reshape(2, 3), b"labels": [6, 9], b"batch_label": b"training batch 1 of 5"},
}

print(f"# CPython {sys.version.split()[0]}, numpy {np.__version__}")
old = int(np.__version__[0]) < 2
for name, value in values.items():
    if old and not name.startswith(("array", "scalars")):
        continue  # as numpy 2's
    written = text(value)
    for protocol in (0, 2, 5) if old else (4,) if name in ("lists", "dicts") else range(6):
        data = pickle.dumps(value, protocol)
        print(name, protocol, base64.b64encode(data).decode(), written, sep="\t")
        written = "="
