#!/usr/bin/env python3
"""Prints the values that classes_test.cpp holds, from scikit-learn and Paddle themselves.

    python classes_golden.py        # with numpy and scikit-learn; paddle where it is installed
"""
import numpy as np

N, C = 211, 5
i = np.arange(N)
# Full of ties. The same formulas stand in classes_test.cpp.
scores = ((i * 7919) % 101) / 100
positive = ((i * 31 + 7) % 5 < 2) ^ (scores > 0.6)
logits = ((i[:, None] * 37 + np.arange(C) * 53 + i[:, None] * np.arange(C) * 11) % 97) / 10
labels = np.where(i % 3 == 0, logits.argmax(1), (i * 13) % 4)  # class 4 is rare


def show(name, value):
    print(f"// {name}\n{np.array2string(np.atleast_1d(value), formatter={'float': lambda v: f'{v:.17g}'}, separator=', ', max_line_width=100)}")


try:
    import paddle
    for name, p in (("f32", scores.astype("float32")), ("f64", scores)):
        auc = paddle.metric.Auc()
        auc.update(np.stack([1 - p, p], 1), positive.astype("int64")[:, None])
        show(f"Paddle {paddle.__version__}: Auc, {name}", auc.accumulate())
        auc = paddle.metric.Auc(num_thresholds=10)
        auc.update(np.stack([1 - p, p], 1), positive.astype("int64")[:, None])
        show(f"Paddle: Auc(num_thresholds=10), {name}", auc.accumulate())
    for metric in (paddle.metric.Precision(), paddle.metric.Recall()):
        metric.update(scores.astype("float32")[:, None], positive.astype("int64")[:, None])
        show(f"Paddle: {metric.name()}", metric.accumulate())
except ImportError:
    pass
try:
    import sklearn
    from sklearn import metrics
except ImportError:
    raise SystemExit("// scikit-learn is not installed")
print(f"// scikit-learn {sklearn.__version__}")
show("roc_auc_score", metrics.roc_auc_score(positive, scores))
show("average_precision_score", metrics.average_precision_score(positive, scores))
p, r, f, _ = metrics.precision_recall_fscore_support(positive, scores >= 0.5, average="binary")
show("binary precision, recall, f1", np.array([p, r, f]))
predicted = logits.argmax(1)
for average in ("macro", "micro", "weighted", None):
    p, r, f, _ = metrics.precision_recall_fscore_support(labels, predicted, average=average, zero_division=0)
    show(f"{average}: precision", p)
    show(f"{average}: recall", r)
    show(f"{average}: f1", f)
show("confusion_matrix", metrics.confusion_matrix(labels, predicted))
