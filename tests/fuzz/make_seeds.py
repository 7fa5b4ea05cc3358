"""Writes the seeds of some targets: python3 tests/fuzz/make_seeds.py, with nothing but Python's own modules."""
import base64
import gzip
import io
import pathlib
import struct
import tarfile
import zipfile

here = pathlib.Path(__file__).parent
root = here.parent.parent


def write(target, name, data):
    folder = here / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def tar(members, form=tarfile.USTAR_FORMAT):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        size = archive.offset
    return file.getvalue()[:size] + bytes(1024)  # without the padding to 10 KiB


def zipped(members, how):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, how)
    return file.getvalue()


def packed(data):
    return gzip.compress(data, mtime=0)


def idx(code, dims, data):
    return bytes([0, 0, code, len(dims)]) + b"".join(struct.pack(">I", d) for d in dims) + data


for name, data in {
    "bytes": idx(8, [2, 3], b"abcdef"),
    "shorts": idx(11, [2], b"abcd"),
    "doubles": idx(14, [1, 1, 1], b"abcdefgh"),
    "empty": idx(8, [0, 5], b""),
}.items():
    write("idx", name, data)
    write("idx", name + ".gz", packed(data))

members = [("a.txt", b"text"), ("jpg/b.jpg", bytes(range(256)) * 3), ("empty", b"")]
long = [("long/" + "n" * 120, b"x"), ("bl\u00fcte", b"y")]
for name, data in {
    "ustar.tar": tar(members),
    "gnu.tar": tar(long, tarfile.GNU_FORMAT),
    "pax.tar": tar(long, tarfile.PAX_FORMAT),
    "none.tar": bytes(1024),
    "ustar.tar.gz": packed(tar(members)),
    "deflated.zip": zipped(members, zipfile.ZIP_DEFLATED),
    "stored.zip": zipped(members, zipfile.ZIP_STORED),
}.items():
    write("archive", name, data)

few, many = b"\x05" + bytes(3072), b"\x0c\x22" + bytes(3072)
batches = [(f"c/data_batch_{i}.bin", few) for i in range(1, 6)] + [("c/test_batch.bin", few), ("c/batches.meta.txt", b"a\n" * 10)]
python = (b"\x80\x02}(X\x04\x00\x00\x00datacnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01K\x01M\x00\x0c\x86"
          b"cnumpy\ndtype\nX\x02\x00\x00\x00u1\x89\x88\x87R(K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
          b"T\x00\x0c\x00\x00" + bytes(3072) + b"tb")
for name, data in {
    "ten.bin": few + few,
    "hundred.bin": many,
    "ten.pickle": python + b"X\x06\x00\x00\x00labels]K\x07au.",
    "hundred.pickle": python + b"X\x0b\x00\x00\x00fine_labels]K\x07aX\x0d\x00\x00\x00coarse_labels]K\x07au.",
    "ten.tar.gz": packed(tar(batches)),
    "hundred.zip": zipped([("train", many), ("test.bin", many)], zipfile.ZIP_DEFLATED),
    "ten.gz": packed(few),
}.items():
    write("cifar_binary", name, data)

for line in (root / "tests/golden/pickles/numpy2.txt").read_text().splitlines()[1:]:
    name, protocol, data, _ = line.split("\t")
    data = base64.b64decode(data)
    if len(data) < 700 and protocol in "25":
        write("unpickler", f"{name}_{protocol}", data)
write("unpickler", "torch", b"\x80\x02ccollections\nOrderedDict\n)Rq\x00X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storage"
      b"ctorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x06tQK\x00K\x02K\x03\x86K\x03K\x01\x86\x89ccollections\nOrderedDict\n)RtRs"
      b"}X\x09\x00\x00\x00_metadataccollections\nOrderedDict\n)Rsb.")

def safetensors(header, data=b""):
    return struct.pack("<Q", len(header)) + header + data


one = b'{"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}}'
for name, data in {
    "one": safetensors(one, b"abcdefgh"),
    "empty": safetensors(b"{}"),
    "metadata": safetensors(b'{"__metadata__":{"format":"pt"},"a":{"dtype":"U8","shape":[],"data_offsets":[4,5]},'
                            b'"b":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"n":{"dtype":"I64","shape":[0],"data_offsets":[5,5]}}  ', b"abcde"),
    "hole": safetensors(one.replace(b"[0,8]", b"[1,9]"), b"abcdefghi"),
    "huge": safetensors(one.replace(b"[2,1]", b"[4294967296,4294967296]"), b"abcdefgh"),
    "short": safetensors(one, b"abc"),
    "length": b"\xff" * 8 + one,
}.items():
    write("safetensors", name, data)


def field(number, data):
    """A field of a protobuf: bytes, or a small number."""
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value):
    encoded = b""
    while value > 127:
        encoded += bytes([value & 127 | 128])
        value >>= 7
    return encoded + bytes([value])


def piece(text, score, kind):
    return field(1, field(1, text.encode()) + varint(2 << 3 | 5) + struct.pack("<f", score) + field(3, kind))


own = b"".join(piece(text, -i, 1) for i, text in enumerate(["a", "b", "ab", "\u2581", "\u2581ab", "1"]))
start = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("<m>", 0, 4) + piece("Th", -9, 5)
char_map = struct.pack("<4I", 12, 0x400, ord("A"), 0) + b"a\0"
for name, data in {
    "unigram": start + own + field(3, field(2, char_map) + field(3, 1)),
    "bpe": start + own + field(2, field(3, 2)),
    "bytes": start + own + b"".join(piece(f"<0x{byte:02X}>", 0, 6) for byte in range(256)) + field(2, field(3, 2) + field(35, 1)),
    "llama3.json": b'{"added_tokens":[{"id":3,"content":"<|end|>","special":true,"rstrip":true}],"normalizer":null,"pre_tokenizer":'
                   b'{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\\\p{L}+|\\\\s+(?!\\\\S)|\\\\s"},'
                   b'"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]},'
                   b'"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<|end|>"}},{"Sequence":{"id":"A"}}]},'
                   b'"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","ignore_merges":true,"vocab":{"a":0,"b":1,"ab":2},'
                   b'"merges":[["a","b"]]}}',
    "digits.json": b'{"added_tokens":[],"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},'
                   b'{"type":"ByteLevel"}]},"model":{"vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}}',
}.items():
    write("tokenizer", name, data)
