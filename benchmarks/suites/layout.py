"""Either memory format, by kind of layer: what the rule of `memory_format = auto` rests on."""

from suites.base import Case, Measure, check_step, ours, samples_ms

MODELS = ("resnet18", "plain", "gray", "pointwise", "depthwise", "grouped", "decoder", "f64")


def cases(args):
    for model in MODELS:
        variants = {
            f"argosy_{format}": ours(args, "bench_memory_format", model, "--format", format, ranks=1)
            for format in ("channels_last", "contiguous")
        }
        pairs = [("argosy_channels_last", "argosy_contiguous", None)]
        yield Case("layout", model, variants, [Measure(model, "ms", samples_ms, pairs)], check_step(exact_end=False))
