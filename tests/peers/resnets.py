"""Weights that torch.save wrote, in our models, and ours in torchvision's: resnets.py PROGRAM"""
import subprocess
import sys

import torch
import torchvision

MODELS = ["resnet18", "resnet34", "resnet50", "resnext50_32x4d", "wide_resnet50_2"]


def fresh(name, seed):
    torch.manual_seed(seed)
    return getattr(torchvision.models, name)()


def used(name):
    """A model whose statistics are not those of a fresh one."""
    model = fresh(name, 7)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.uniform_(0.3, 0.7)
                module.bias.uniform_(-0.1, 0.1)
                module.running_mean.uniform_(-0.1, 0.1)
                module.running_var.uniform_(0.8, 1.2)
                module.num_batches_tracked.fill_(3)
    return model.eval()


def compare(name, program):
    model = used(name)
    images = torch.randn(3, 3, 96, 80)
    torch.save(model.state_dict(), "weights.pth")
    torch.save({"images": images}, "images.pth")
    subprocess.run([program, name, "1", "weights.pth", "images.pth", "logits.pth", "ours.pth"], check=True)
    with torch.no_grad():
        expected = model(images)
    logits = torch.load("logits.pth", weights_only=True)["logits"]
    difference = (logits - expected).abs().max().item()

    ours = torch.load("ours.pth", weights_only=True, mmap=True)
    theirs = fresh(name, 1)
    state = theirs.state_dict()
    assert list(ours) == list(state)
    bits = all(torch.equal(ours[key], value) for key, value in state.items())
    apart = max((ours[key].double() - value.double()).abs().max().item() for key, value in state.items())
    theirs.load_state_dict(ours)  # strict
    print(f"{name}: logits differ by {difference:.1e} (largest {expected.abs().max().item():.2f}); "
          f"with one seed the weights {'are the same bits' if bits else f'differ by {apart:.1e}'}", flush=True)
    assert difference < 1e-5
    assert bits


if __name__ == "__main__":
    torch.set_num_threads(1)
    for model_name in MODELS:
        compare(model_name, sys.argv[1])
