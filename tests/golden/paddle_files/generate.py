"""Writes the .pdparams here by the real Paddle, and what they hold as text: python3 tests/golden/paddle_files/generate.py (Paddle 3.3)."""
import pathlib

import numpy as np
import paddle

here = pathlib.Path(__file__).parent


class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = paddle.nn.Conv2D(1, 2, 3)
        self.norm = paddle.nn.BatchNorm2D(2)
        self.fc = paddle.nn.Linear(4, 3)


paddle.seed(7)
state = Net().state_dict()
state["half"] = paddle.to_tensor([1.5, -2.0, 0.1]).astype("bfloat16")
state["steps"] = paddle.to_tensor(np.arange(3, dtype="int64"))
for protocol in (2, 4):
    paddle.save(state, str(here / f"model_{protocol}.pdparams"), protocol=protocol)
optimizer = paddle.optimizer.Adam(learning_rate=paddle.optimizer.lr.StepDecay(0.1, 2), parameters=Net().parameters())
paddle.save(optimizer.state_dict(), str(here / "optimizer.pdopt"))
with open(here / "model.txt", "w") as out:
    out.write(f"# by generate.py, Paddle {paddle.__version__}: name, shape, sum of the elements (f64), first element\n")
    for name, tensor in paddle.load(str(here / "model_4.pdparams")).items():
        values = np.asarray(tensor.astype("float64")).ravel()
        shape = "x".join(str(d) for d in tensor.shape)
        out.write(f"{name} {shape} {values.sum():.17g} {values[0]:.17g}\n")
