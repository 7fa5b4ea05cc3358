"""boards.py PROGRAM: what TensorBoard and VisualDL themselves read of our files, against what was written."""
import io
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image
from tensorboard.backend.event_processing import event_accumulator, event_file_loader, plugin_event_accumulator
from tensorboard.util import tensor_util
from visualdl import LogReader

VALUES = (np.arange(-500, 1500, dtype=np.float32) / np.float32(1000)).astype(np.float32)
LOSSES = [np.float32(1 / (i + 1)) for i in range(100)]
TEXT = "**größer** \N{REPLACEMENT CHARACTER}"


def check_picture(png):
    pixels = np.asarray(Image.open(io.BytesIO(png)))
    want = np.array([[[100 * y, 50 * x, 7] for x in range(3)] for y in range(2)])
    assert pixels.shape == (2, 3, 3) and (pixels == want).all(), pixels


def check_tensorboard(folder):
    everything = {kind: 0 for kind in event_accumulator.DEFAULT_SIZE_GUIDANCE}
    runs = event_accumulator.EventAccumulator(folder, size_guidance=everything)
    runs.Reload()
    tags = runs.Tags()
    assert set(tags["scalars"]) == {"loss/train", "broken", "far"}, tags
    losses = runs.Scalars("loss/train")
    assert [e.step for e in losses] == [10 * i for i in range(100)]
    assert [np.float32(e.value) for e in losses] == LOSSES
    assert [e.wall_time for e in losses] == [1700000000.5 + i for i in range(100)]
    assert math.isnan(runs.Scalars("broken")[0].value)
    assert runs.Scalars("far")[0].step == 1 << 40
    for tag, step in [("picture", 5), ("png", 6)]:
        (event,) = runs.Images(tag)
        assert (event.step, event.height, event.width) == (step, 2, 3), event
        check_picture(event.encoded_image_string)
    (event,) = runs.Histograms("weights")
    h = event.histogram_value
    assert event.step == 7 and h.num == 2000
    assert h.min == VALUES.min() and h.max == VALUES.max()
    assert math.isclose(h.sum, VALUES.astype(np.float64).sum(), rel_tol=1e-12)
    assert math.isclose(h.sum_squares, (VALUES.astype(np.float64) ** 2).sum(), rel_tol=1e-12)
    counts, _ = np.histogram(VALUES, [-np.inf] + list(h.bucket_limit))
    assert list(counts) == list(h.bucket), (counts, h.bucket)
    (event,) = runs.Histograms("none")
    assert event.histogram_value.num == 0
    (event,) = runs.Tensors("note/text_summary")
    assert event.step == 8 and [t.decode() for t in tensor_util.make_ndarray(event.tensor_proto)] == [TEXT]
    assert runs.PluginTagToContent("text").keys() == {"note/text_summary"}
    for name, value in [("train", 0.25), ("eval", 0.5)]:
        part = event_accumulator.EventAccumulator(os.path.join(folder, f"both_{name}"))
        part.Reload()
        (event,) = part.Scalars("both")
        assert (event.step, event.value) == (4, value), event
    return sum(1 for _ in event_file_loader.LegacyEventFileLoader(event_file(folder)).Load())


def event_file(folder):
    (name,) = [n for n in os.listdir(folder) if "tfevents" in n]
    return os.path.join(folder, name)


def check_visualdl(folder):
    (name,) = os.listdir(folder)
    reader = LogReader(file_path=os.path.join(folder, name))
    losses = reader.get_data("scalar", "loss/train")
    assert [r.id for r in losses] == [10 * i for i in range(100)]
    assert [np.float32(r.value) for r in losses] == LOSSES
    assert [r.timestamp for r in losses] == [1700000000500 + 1000 * i for i in range(100)]
    assert math.isnan(reader.get_data("scalar", "broken")[0].value)
    assert reader.get_data("scalar", "far")[0].id == 1 << 40
    both = {(r.tag_value.tag, r.tag_value.value, r.id) for r in reader.get_data("scalars", "both")}
    assert both == {("train", 0.25, 4), ("eval", 0.5, 4)}, both
    for tag, step in [("picture", 5), ("png", 6)]:
        (record,) = reader.get_data("image", tag)
        assert record.id == step
        check_picture(record.image.encoded_image_string)
    (record,) = reader.get_data("histogram", "weights")
    counts, edges = np.histogram(VALUES.astype(np.float64), bins=10)
    assert list(record.histogram.hist) == list(counts), (record.histogram.hist, counts)
    assert np.allclose(record.histogram.bin_edges, edges, rtol=1e-12)
    (record,) = reader.get_data("text", "note")
    assert record.id == 8 and record.text.encoded_text_string == TEXT
    (record,) = reader.get_data("meta_data", "meta_data_tag")
    assert record.meta_data.display_name == "the run"


def check_torn(folder):
    """A file that ends anywhere in its last record is good up to there."""
    path = event_file(folder)
    data = open(path, "rb").read()
    whole = sum(1 for _ in event_file_loader.LegacyEventFileLoader(path).Load())
    for cut in (1, 5, 30):
        torn = os.path.join(folder, "torn.tfevents")
        open(torn, "wb").write(data[:-cut])
        read = sum(1 for _ in event_file_loader.LegacyEventFileLoader(torn).Load())
        assert read == whole - 1, (cut, read, whole)
        os.remove(torn)


def check_purge(folder, program):
    """Programs that are killed and go on some steps before: each step stands there once, the last one's."""
    for begin, end in [(0, 50), (30, 60), (40, 45), (41, 70)]:
        assert subprocess.run([program, folder, str(begin), str(end)]).returncode == -9
    want = [(s, float(1000 * begin + s)) for begin, end in [(0, 30), (30, 40), (40, 41), (41, 70)]
            for s in range(begin, end)]
    board = os.path.join(folder, "tensorboard")
    for path, tag in [(board, "loss"), (os.path.join(board, "both_train"), "both")]:
        old = event_accumulator.EventAccumulator(path)
        old.Reload()
        assert [(e.step, e.value) for e in old.Scalars(tag)] == want, old.Scalars(tag)
        new = plugin_event_accumulator.EventAccumulator(path)  # of the server
        new.Reload()
        read = [(e.step, tensor_util.make_ndarray(e.tensor_proto).item()) for e in new.Tensors(tag)]
        assert read == want, read
    return len(want)


program = sys.argv[1]
with tempfile.TemporaryDirectory() as work:
    for ending in ("close", "kill"):
        folder = os.path.join(work, ending)
        code = subprocess.run([program, folder, ending]).returncode
        assert code == (0 if ending == "close" else -9), code
        records = check_tensorboard(os.path.join(folder, "tensorboard"))
        check_torn(os.path.join(folder, "tensorboard"))
        check_visualdl(os.path.join(folder, "visualdl"))
        print(f"{ending}: TensorBoard and VisualDL read what was written ({records} events)")
    steps = check_purge(os.path.join(work, "again"), program)
    print(f"killed and gone on three times: each of {steps} steps once")
