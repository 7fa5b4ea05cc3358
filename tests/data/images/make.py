"""Writes the pictures of this folder and what Pillow decodes them to.

    python3 make.py FOLDER_OF_FLOWERS      # needs pillow, numpy, g++, libjpeg

golden.txt has a line for each picture and mode: file, mode (as_is, gray, rgb, upright), height, width,
channels, the largest difference allowed, offset of the pixels in golden.bin.gz. Where golden.bin would be
too large the offset is -1 and the CRC-32 of the pixels follows.
"""
import gzip
import io
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np
from PIL import Image, ImageOps

here = pathlib.Path(__file__).resolve().parent
flowers = pathlib.Path(sys.argv[1])
golden, index = bytearray(), []


def photo(name, size):
    image = Image.open(flowers / name).convert("RGB")
    return image.crop((60, 60, 60 + 6 * size[0], 60 + 6 * size[1])).resize(size, Image.BICUBIC)


def expect(name, mode, pixels, bound=0, crc_only=False):
    pixels = np.asarray(pixels)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    pixels = np.ascontiguousarray(pixels, dtype=np.uint8)
    line = f"{name} {mode} {pixels.shape[0]} {pixels.shape[1]} {pixels.shape[2]} {bound}"
    if crc_only:
        index.append(f"{line} -1 {zlib.crc32(pixels.tobytes())}")
    else:
        index.append(f"{line} {len(golden)}")
        golden.extend(pixels.tobytes())


def as_is(image):
    if image.mode in ("LA", "RGBA", "PA") or "transparency" in image.info:
        return image.convert("RGBA")
    if image.mode in ("1", "L"):
        return image.convert("L")
    return image.convert("RGB")


def gray(path):
    image = Image.open(path)
    if image.format == "JPEG" and image.mode == "RGB" and path.name != "rgb.jpg":
        image.draft("L", image.size)  # libjpeg's own Y
    return image.convert("L") if image.mode == "L" else image.convert("RGB").convert("L")


def expect_all(name, bound=0):
    path = here / name
    image = Image.open(path)
    palette_is_gray = image.mode == "P" and image.format == "BMP" and all(
        r == g == b for r, g, b in zip(*[iter(image.getpalette())] * 3))
    expect(name, "as_is", image.convert("L") if palette_is_gray else as_is(image), bound)
    expect(name, "rgb", Image.open(path).convert("RGB"), bound)
    expect(name, "gray", gray(path), bound)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def packed(rows, bits):
    """Rows of samples as PNG keeps them: filter 0, then bits from the top."""
    out = bytearray()
    for row in rows:
        row = row.reshape(-1)
        out.append(0)
        if bits == 16:
            out.extend(row.astype(">u2").tobytes())
        elif bits == 8:
            out.extend(row.astype(np.uint8).tobytes())
        else:
            ones = ((row[:, None] >> np.arange(bits - 1, -1, -1)) & 1).astype(np.uint8)
            out.extend(np.packbits(ones.reshape(-1)).tobytes())
    return bytes(out)


def png(samples, bits, color, extra=b"", interlaced=False):
    """A PNG of samples (height, width, channels), which Pillow cannot write in all kinds."""
    if interlaced:
        passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
        data = b"".join(packed(samples[y::dy, x::dx], bits) for y, x, dy, dx in passes
                        if samples[y::dy, x::dx].size)
    else:
        data = packed(samples, bits)
    header = struct.pack(">IIBBBBB", samples.shape[1], samples.shape[0], bits, color, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(data, 9)) +
            chunk(b"IEND", b""))


def make_jpegs():
    small = photo("image_00075.jpg", (37, 29))
    small.save(here / "420.jpg", quality=85)
    small.save(here / "422.jpg", quality=85, subsampling="4:2:2")
    small.save(here / "444.jpg", quality=85, subsampling="4:4:4")
    small.save(here / "progressive.jpg", quality=85, progressive=True)
    small.convert("L").save(here / "gray.jpg", quality=85)
    small.convert("L").save(here / "gray_progressive.jpg", quality=85, progressive=True)
    small.convert("CMYK").save(here / "cmyk.jpg", quality=85)
    with tempfile.TemporaryDirectory() as folder:
        raw, program = pathlib.Path(folder) / "raw", pathlib.Path(folder) / "make_jpegs"
        raw.write_bytes(small.tobytes())
        subprocess.run(["g++", "-std=c++20", f"-I{here.parents[2]}", "-o", program, here / "make_jpegs.cpp", "-ljpeg"], check=True)
        subprocess.run([program, raw, "37", "29", here], check=True)
    for name in ("420 422 444 progressive gray gray_progressive cmyk ycck rgb 411 440 restart arithmetic "
                 "optimized").split():
        expect_all(f"{name}.jpg")
    tiny = photo("image_00075.jpg", (21, 13))
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        name = f"exif_{orientation}.jpg"
        tiny.save(here / name, quality=60, exif=exif)
        expect(name, "upright", ImageOps.exif_transpose(Image.open(here / name)))
    tiny.save(here / "exif_6.png", exif=exif_of(6))
    tiny.save(here / "exif_6.webp", exif=exif_of(6), lossless=True)
    tiny.save(here / "exif_6.tiff", tiffinfo={0x0112: 6})
    for name in ("exif_6.png", "exif_6.webp"):
        expect(name, "upright", ImageOps.exif_transpose(Image.open(here / name)))
    expect("exif_6.tiff", "upright", tiny.transpose(Image.Transpose.ROTATE_270))
    expect("exif_6.tiff", "as_is", tiny)


def exif_of(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def make_flowers():
    for name, source in (("flower_1.jpg", "image_01270.jpg"), ("flower_2.jpg", "image_05140.jpg"), ("flower_3.jpg", "image_06121.jpg")):
        (here / name).write_bytes((flowers / source).read_bytes())
        expect(name, "rgb", Image.open(here / name).convert("RGB"), crc_only=True)
        expect(name, "gray", gray(here / name), crc_only=True)


def make_pngs():
    rng = np.random.default_rng(3)
    small = photo("image_00075.jpg", (33, 21))
    rgb = np.asarray(small)
    luma = np.asarray(small.convert("L"))
    alpha = rng.integers(0, 256, luma.shape, dtype=np.uint8)
    rgba = np.dstack([rgb, alpha])

    def write(name, data):
        (here / name).write_bytes(data)

    for bits in (1, 2, 4, 8):
        write(f"gray{bits}.png", png(luma[:, :, None] >> (8 - bits), bits, 0))
        expect_all(f"gray{bits}.png")
    write("rgb.png", png(rgb, 8, 2))
    write("interlaced.png", png(rgb, 8, 2, interlaced=True))
    write("gray_interlaced.png", png(luma[:, :, None] >> 6, 2, 0, interlaced=True))
    write("rgba.png", png(rgba, 8, 6))
    write("gray_alpha.png", png(np.dstack([luma, alpha]), 8, 4))
    small.quantize(16).save(here / "palette.png")
    small.quantize(200).save(here / "palette_transparent.png", transparency=bytes(range(0, 200)))
    write("gray_transparent.png", png(luma[:, :, None], 8, 0, chunk(b"tRNS", struct.pack(">H", int(luma[4, 4])))))
    write("rgb_transparent.png", png(rgb, 8, 2, chunk(b"tRNS", struct.pack(">HHH", *map(int, rgb[4, 4])))))
    for name in ("rgb interlaced gray_interlaced rgba gray_alpha palette palette_transparent gray_transparent "
                 "rgb_transparent").split():
        expect_all(f"{name}.png")
    # 16 bits: rounded here, for Pillow cuts or keeps them.
    wide = rng.integers(0, 65536, (9, 300, 3), dtype=np.uint16)
    rounded = lambda v: (v.astype(np.int64) * 255 * 2 + 65535) // (2 * 65535)
    write("rgb16.png", png(wide, 16, 2))
    expect("rgb16.png", "as_is", rounded(wide))
    write("gray16.png", png(wide[:, :, :1], 16, 0))
    expect("gray16.png", "as_is", rounded(wide[:, :, :1]))
    write("gray16_interlaced.png", png(wide[:, :, :1], 16, 0, interlaced=True))
    expect("gray16_interlaced.png", "as_is", rounded(wide[:, :, :1]))
    Image.fromarray(wide[:, :, 0]).save(here / "gray16.tiff")
    expect("gray16.tiff", "as_is", rounded(wide[:, :, :1]), bound=1)  # libtiff keeps the upper byte
    return small, Image.fromarray(rgba)


def make_others(small, rgba):
    luma = small.convert("L")
    small.save(here / "raw.tiff")
    small.save(here / "lzw.tiff", compression="tiff_lzw")
    small.save(here / "deflate.tiff", compression="tiff_adobe_deflate")
    small.save(here / "jpeg.tiff", compression="jpeg", quality=90)
    small.quantize(16).save(here / "palette.tiff", compression="packbits")
    luma.save(here / "gray.tiff", compression="tiff_lzw")
    luma.convert("1").save(here / "fax.tiff", compression="group4")
    rgba.save(here / "rgba.tiff")
    for name in "raw lzw deflate palette gray fax rgba".split():
        expect_all(f"{name}.tiff")
    expect("jpeg.tiff", "as_is", Image.open(here / "jpeg.tiff").convert("RGB"), bound=0)
    small.save(here / "lossy.webp", quality=80)
    small.save(here / "lossless.webp", lossless=True)
    rgba.save(here / "rgba.webp", lossless=True, exact=True)
    rgba.save(here / "rgba_lossy.webp", quality=80)
    for name in ("lossy", "lossless", "rgba", "rgba_lossy"):
        expect_all(f"{name}.webp")
    small.save(here / "rgb24.bmp")
    rgba.save(here / "rgba32.bmp")
    luma.save(here / "gray.bmp")
    small.quantize(40).save(here / "palette.bmp")
    luma.convert("1").save(here / "bits.bmp")
    rgb = np.asarray(small).astype(np.uint32)
    for name, shifts in (("rgb565", (11, 5, 0)), ("rgb555", (10, 5, 0))):
        green = 6 if name == "rgb565" else 5
        value = (rgb[:, :, 0] >> 3 << shifts[0]) | (rgb[:, :, 1] >> (8 - green) << 5) | (rgb[:, :, 2] >> 3)
        rows = np.pad(value.astype("<u2"), ((0, 0), (0, value.shape[1] % 2)))[::-1].tobytes()
        masks = b"" if name == "rgb555" else struct.pack("<III", 0xF800, 0x07E0, 0x001F)
        info = struct.pack("<IiiHHIIiiII", 40, value.shape[1], value.shape[0], 1, 16, 3 if masks else 0, len(rows),
                           0, 0, 0, 0)
        at = 14 + len(info) + len(masks)
        (here / f"{name}.bmp").write_bytes(b"BM" + struct.pack("<IHHI", at + len(rows), 0, 0, at) + info + masks + rows)
    for name in "rgb24 rgba32 gray palette bits rgb565 rgb555".split():
        expect_all(f"{name}.bmp")
    small.save(here / "raw.ppm")
    luma.save(here / "raw.pgm")
    luma.convert("1").save(here / "raw.pbm")
    tiny = np.asarray(small)[:7, :9]
    text = lambda a: " ".join(map(str, a.reshape(-1))) + "\n"
    (here / "text.ppm").write_text("P3\n# a comment\n9 7 255\n" + text(tiny))
    (here / "text.pgm").write_text("P2 9 7\n15\n" + text(tiny[:, :, 0] >> 4))
    (here / "text.pbm").write_text("P1 9 7\n" + "".join(map(str, (tiny[:, :, 0] >> 7).reshape(-1))) + "\n")
    (here / "max100.pgm").write_bytes(b"P5 9 7 100\n" + (tiny[:, :, 1] % 101).astype(np.uint8).tobytes())
    for name in "raw.ppm raw.pgm raw.pbm text.ppm text.pgm text.pbm".split():
        expect_all(name)
    expect_all("max100.pgm", bound=1)  # Pillow rounds halves to even
    wide = (tiny.astype(np.uint32) * 257 % 5001).astype(">u2")
    (here / "max5000.ppm").write_bytes(b"P6 9 7 5000\n" + wide.tobytes())
    expect("max5000.ppm", "as_is", (wide.astype(np.int64) * 510 + 5000) // 10000)


make_jpegs()
make_flowers()
make_others(*make_pngs())
packed_golden = io.BytesIO()
with gzip.GzipFile(fileobj=packed_golden, mode="wb", compresslevel=9, mtime=0) as file:
    file.write(bytes(golden))
(here / "golden.bin.gz").write_bytes(packed_golden.getvalue())
(here / "golden.txt").write_text("\n".join(index) + "\n")
print(f"{len(index)} goldens, {sum(f.stat().st_size for f in here.iterdir() if f.is_file())} bytes in all")
