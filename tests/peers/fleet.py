"""Paddle's fleet as its users write it; nothing here knows who starts it."""
import paddle
from paddle import nn
from paddle.distributed import fleet


def main():
    fleet.init(is_collective=True)
    rank, size = paddle.distributed.get_rank(), paddle.distributed.get_world_size()
    paddle.seed(7 + rank)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = paddle.optimizer.SGD(learning_rate=0.05, parameters=model.parameters())
    model = fleet.distributed_model(model)
    optimizer = fleet.distributed_optimizer(optimizer)
    inputs = paddle.randn([64, 8])
    targets = inputs.sum(axis=1, keepdim=True)
    losses = []
    for _ in range(50):
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    flat = paddle.concat([p.detach().flatten() for p in model.parameters()])
    gathered = []
    paddle.distributed.all_gather(gathered, flat)
    assert losses[-1] < losses[0] / 2, losses
    assert all(bool((flat == other).all()) for other in gathered)
    print(f"rank {rank} of {size}: loss fell, weights agree", flush=True)


if __name__ == "__main__":
    main()
