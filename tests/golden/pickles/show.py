"""python3 show.py FILE...: what pickles hold, one line each, in the form that generate.py explains."""
import collections
import pickle
import struct
import sys


def text(value):
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return "f" + struct.pack(">d", value).hex()
    if isinstance(value, str):
        return "s" + value.encode("utf-8", "surrogatepass").hex()
    if isinstance(value, bytes):
        return "b" + value.hex()
    if isinstance(value, bytearray):
        return "y" + value.hex()
    if isinstance(value, list):
        return "[" + ",".join(map(text, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ",".join(map(text, value)) + ")"
    if isinstance(value, collections.OrderedDict):
        return "O" + text(dict(value)) + text(value.__dict__ or None)
    if isinstance(value, dict):
        return "{" + ",".join(text(k) + ":" + text(v) for k, v in value.items()) + "}"
    if isinstance(value, frozenset):
        return "F<" + ",".join(sorted(map(text, value))) + ">"
    if isinstance(value, set):
        return "<" + ",".join(sorted(map(text, value))) + ">"
    if type(value).__name__ == "ndarray":
        little = value.astype(value.dtype.newbyteorder("<"))
        code = value.dtype.str[1:]
        return f"A{code};{'x'.join(map(str, value.shape))};{little.tobytes('C').hex()}"
    if hasattr(value, "item"):
        return text(value.item())
    raise TypeError(type(value))


if __name__ == "__main__":
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            print(text(pickle.load(file)))
