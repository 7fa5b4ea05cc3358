"""fit.py PROGRAM: what TensorBoard and VisualDL read of a real fit(), against what its callbacks were told."""
import io
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image
from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
from tensorboard.util import tensor_util
from visualdl import LogReader


def same(points, want):
    """Steps equal, values equal as floats."""
    assert [s for s, _ in points] == [s for s, _ in want], (points[:3], want[:3])
    assert [np.float32(v) for _, v in points] == [np.float32(v) for _, v in want], (points[:3], want[:3])


def check_scalars(read, truth):
    for name in ("loss", "lr", "acc"):
        same(read(f"train/{name}"), [(r["step"], r[name]) for r in truth["train"]])
    for name in ("loss", "acc"):
        same(read(f"eval/{name}"), [(r["epoch"], r[name]) for r in truth["eval"]])
    for name in ("images_per_second", "input_wait"):
        points = read(f"train/{name}")
        assert [s for s, _ in points] == [r["step"] for r in truth["train"]]
        assert all(v >= 0 for _, v in points)
    assert len(truth["train"]) == 40 and len(truth["eval"]) == 4


def check_sheet(png):
    assert Image.open(io.BytesIO(png)).size == (4 * 36, 4 * 36)  # four rows of four, with frames


def check_tensorboard(folder, truth):
    everything = {kind: 0 for kind in event_accumulator.DEFAULT_SIZE_GUIDANCE}
    board = event_accumulator.EventAccumulator(folder, size_guidance=everything)
    board.Reload()
    check_scalars(lambda tag: [(e.step, e.value) for e in board.Scalars(tag)], truth)
    images = board.Images("eval/samples")
    assert [e.step for e in images] == [1, 2, 3, 4]
    check_sheet(images[-1].encoded_image_string)
    for g in truth["gradients"]:
        h = {e.step: e.histogram_value for e in board.Histograms("gradients/" + g["name"])}[g["step"]]
        assert h.num == g["num"] and math.isclose(h.sum, g["sum"], rel_tol=1e-6, abs_tol=1e-9), (h, g)
        assert h.max == g["max"]
        assert g["step"] in [e.step for e in board.Histograms("weights/" + g["name"])]
    assert {g["step"] for g in truth["gradients"]} == {0, 100, 200, 300}
    (text,) = board.Tensors("training/text_summary")
    (table,) = tensor_util.make_ndarray(text.tensor_proto)
    assert '| hyperparameters | {"dropout":"0.3"} |' in table.decode(), table
    assert "| network | ShapesNet |" in table.decode() and "| batch_size | 8 |" in table.decode()


def check_visualdl(folder, truth):
    (name,) = os.listdir(folder)
    reader = LogReader(file_path=os.path.join(folder, name))
    check_scalars(lambda tag: [(r.id, r.value) for r in reader.get_data("scalar", tag)], truth)
    images = reader.get_data("image", "eval/samples")
    assert [r.id for r in images] == [1, 2, 3, 4]
    check_sheet(images[-1].image.encoded_image_string)
    for g in truth["gradients"]:
        steps = {r.id: r.histogram for r in reader.get_data("histogram", "gradients/" + g["name"])}
        assert sum(steps[g["step"]].hist) == g["num"]
    (record,) = reader.get_data("text", "training")
    assert "| network | ShapesNet |" in record.text.encoded_text_string


def check_metrics(path, truth):
    records = [json.loads(line) for line in open(path)]
    train = [r for r in records if r["split"] == "train"]
    assert [(r["step"], r["loss"], r["lr"], r["metrics"]["acc"]) for r in train] == [
        (r["step"], r["loss"], r["lr"], r["acc"]) for r in truth["train"]]
    evaluations = [r for r in records if r["split"] == "eval"]
    assert [(r["epoch"], r["step"], r["loss"], r["metrics"]["acc"]) for r in evaluations] == [
        (r["epoch"], r["step"], r["loss"], r["acc"]) for r in truth["eval"]]


def check_timeline(run, rank):
    events = json.load(open(os.path.join(run, f"timeline.rank{rank}.json")))
    names = [e["name"] for e in events if e["ph"] == "X"]
    for name in ("forward", "backward", "reduce", "wait for gradients", "update"):
        assert names.count(name) == 400, (name, names.count(name))
    assert names.count("evaluation") == 4


def check_gone_on(folder, program):
    """Killed before its first checkpoint and twice after one: each update of the 60 stands there once."""
    run = os.path.join(folder, "run")
    board = os.path.join(run, "tensorboard")
    for update in (5, 18, 41, 100):
        subprocess.run([program, folder, str(update)], stderr=subprocess.DEVNULL)
    updates = list(range(1, 61))
    old = event_accumulator.EventAccumulator(board)
    old.Reload()
    curve = {e.step: e.value for e in old.Scalars("train/loss")}
    assert [e.step for e in old.Scalars("train/loss")] == updates, old.Scalars("train/loss")
    evaluations = {(e.step, e.value) for e in old.Scalars("eval/loss")}
    assert sorted(step for step, _ in evaluations) == [1, 2, 3], evaluations
    new = plugin_event_accumulator.EventAccumulator(board)
    new.Reload()
    assert [e.step for e in new.Tensors("train/loss")] == updates, new.Tensors("train/loss")
    records = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"))]
    train = [r for r in records if r["split"] == "train"]
    assert [r["step"] for r in train] == updates, train
    assert {r["step"]: np.float32(r["loss"]) for r in train} == {s: np.float32(v) for s, v in curve.items()}
    assert [r["epoch"] for r in records if r["split"] == "eval"] == [1, 2, 3]
    rows = open(os.path.join(run, "epochs.csv")).read().split()
    assert [row.split(",")[0] for row in rows] == ["epoch", "1", "2", "3"], rows
    shown = LogReader(file_path=sorted(os.path.join(run, "visualdl", n) for n in os.listdir(
        os.path.join(run, "visualdl")))[-1])  # VisualDL's choice of a folder's files
    assert [r.id for r in shown.get_data("scalar", "train/loss")] == list(range(36, 61))
    return len(updates)


program = sys.argv[1]
with tempfile.TemporaryDirectory() as work:
    subprocess.run([program, work], check=True)
    run = os.path.join(work, "run")
    truth = json.load(open(os.path.join(work, "truth.json")))
    check_tensorboard(os.path.join(run, "tensorboard"), truth)
    check_visualdl(os.path.join(run, "visualdl"), truth)
    check_metrics(os.path.join(run, "metrics.jsonl"), truth)
    for rank in (0, 1):
        check_timeline(run, rank)
    accuracy = truth["eval"][-1]["acc"]
    assert accuracy > 0.8, accuracy
    print(f"TensorBoard, VisualDL and metrics.jsonl have the figures of fit(): {len(truth['train'])} of training, "
          f"{len(truth['eval'])} evaluations, {len(truth['gradients'])} histograms (accuracy {accuracy:.2f})")
    updates = check_gone_on(os.path.join(work, "again"), program)
    print(f"killed three times: TensorBoard, metrics.jsonl and epochs.csv have each of {updates} updates once")
