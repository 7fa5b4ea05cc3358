// A training step of small convolutional models in either memory format: what the rule of
// engine::advise_channels_last() rests on.
//
//     argosy launch --nproc_per_node 1 bench_memory_format resnet18|plain|gray|depthwise|grouped|
//         pointwise|decoder|f64 --format contiguous|channels_last
#include <argosy/argosy.h>

#include <torch/torch.h>

#include "argosy/program/command_line.h"

#include "benchmarks/workload.h"

namespace {

using namespace argosy;
namespace nn = torch::nn;

struct Options {
  std::string model;
  std::string format;
  int steps = 12;
  int warmup = 3;
};

/// A model from images to class scores, and the images that it takes.
struct Workload {
  std::function<at::Tensor(const at::Tensor&)> forward;
  std::shared_ptr<nn::Module> module;
  int64_t batch = 32;
  int64_t channels = 3;
  int64_t side = 32;
  at::ScalarType type = at::kFloat;
};

nn::Conv2d conv(int64_t in, int64_t out, int64_t side, int64_t groups = 1, int64_t stride = 1) {
  return nn::Conv2d(
      nn::Conv2dOptions(in, out, side).padding(side / 2).groups(groups).stride(stride).bias(false));
}

void add_norm_relu(nn::Sequential& net, int64_t channels) {
  net->push_back(nn::BatchNorm2d(channels));
  net->push_back(nn::ReLU(nn::ReLUOptions(true)));
}

void add_classifier(nn::Sequential& net, int64_t channels) {
  net->push_back(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({1, 1})));
  net->push_back(nn::Flatten());
  net->push_back(nn::Linear(channels, 10));
}

/// Four blocks of `block(channels)` layers between a first convolution and a classifier.
template <typename Block>
nn::Sequential stack(int64_t in, int64_t channels, const Block& block) {
  nn::Sequential net;
  net->push_back(conv(in, channels, 3));
  add_norm_relu(net, channels);
  for (int i = 0; i < 4; ++i) {
    block(net, channels);
    add_norm_relu(net, channels);
  }
  add_classifier(net, channels);
  return net;
}

nn::Sequential decoder() {
  nn::Sequential net;
  net->push_back(conv(3, 32, 3, 1, 2));
  add_norm_relu(net, 32);
  net->push_back(conv(32, 64, 3, 1, 2));
  add_norm_relu(net, 64);
  net->push_back(nn::ConvTranspose2d(nn::ConvTranspose2dOptions(64, 32, 4).stride(2).padding(1)));
  add_norm_relu(net, 32);
  net->push_back(nn::ConvTranspose2d(nn::ConvTranspose2dOptions(32, 16, 4).stride(2).padding(1)));
  add_norm_relu(net, 16);
  add_classifier(net, 16);
  return net;
}

Workload of_sequential(nn::Sequential net, int64_t channels, int64_t side) {
  return {.forward = [net](const at::Tensor& x) mutable { return net->forward(x); },
          .module = net.ptr(),
          .channels = channels,
          .side = side};
}

Workload make(const std::string& model) {
  const auto full = [](nn::Sequential& net, int64_t c) { net->push_back(conv(c, c, 3)); };
  if (model == "resnet18") {
    vision::ResNet net;
    return {.forward = [net](const at::Tensor& x) mutable { return net->forward(x); },
            .module = net.ptr(),
            .side = 96};
  }
  if (model == "plain" || model == "f64") {
    Workload work = of_sequential(stack(3, 64, full), 3, 32);
    work.type = model == "f64" ? at::kDouble : at::kFloat;
    work.batch = model == "f64" ? 4 : 32;
    return work;
  }
  if (model == "gray") {
    return of_sequential(stack(1, 16, full), 1, 28);
  }
  if (model == "pointwise") {
    return of_sequential(
        stack(3, 128, [](nn::Sequential& net, int64_t c) { net->push_back(conv(c, c, 1)); }),
        3,
        32);
  }
  if (model == "depthwise") {  // as MobileNet: depthwise, then pointwise
    return of_sequential(stack(3,
                               64,
                               [](nn::Sequential& net, int64_t c) {
                                 net->push_back(conv(c, c, 3, c));
                                 add_norm_relu(net, c);
                                 net->push_back(conv(c, c, 1));
                               }),
                         3,
                         32);
  }
  if (model == "grouped") {  // as ResNeXt: nothing but groups beside the first layer
    return of_sequential(
        stack(3, 64, [](nn::Sequential& net, int64_t c) { net->push_back(conv(c, c, 3, 8)); }),
        3,
        32);
  }
  return of_sequential(decoder(), 3, 64);
}

void run(const Options& options) {
  fleet::init();
  torch::manual_seed(1);
  Workload work = make(options.model);
  bench::fill_weights(*work.module);
  work.module->to(work.type);
  const engine::MemoryFormat format = *engine::memory_format(options.format);
  engine::lay_out(*work.module, format);
  const bench::Batch batch = bench::image_batch_of(work.batch, work.channels, work.side, 1);
  const at::Tensor images = batch.images.to(work.type);
  optim::SGD optimizer(work.module, {.lr = 1e-3});
  std::vector<double> samples_ms;
  std::vector<double> losses;
  for (int step = 0; step < options.warmup + options.steps; ++step) {
    const bench::Stopwatch watch;
    at::Tensor loss = nn::functional::cross_entropy(work.forward(engine::in_format(images, format)),
                                                    batch.labels);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    if (step >= options.warmup) {
      samples_ms.push_back(watch.ms());
    }
    losses.push_back(loss.item<double>());
  }
  bench::Report report(options.model);
  report.numbers("samples_ms", samples_ms);
  report.number("loss_first", losses.front());
  report.number("loss_last", losses.back());
  report.text("ranks_agree", "yes");
  bench::add_versions(report);
  report.print();
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  return argosy::program::run(
      {"Time of a training step in either memory format."},
      {{"model",
        "",
        "",
        &o.model,
        {.words = "resnet18|plain|gray|depthwise|grouped|pointwise|decoder|f64", .required = true}},
       {"--format", "WORD", "", &o.format, {.words = "contiguous|channels_last", .required = true}},
       {"--steps", "N", "Measured steps", &o.steps, {.least = 1, .most = 100000}},
       {"--warmup", "N", "Steps before them", &o.warmup, {.least = 0, .most = 100000}}},
      argc,
      argv,
      [&] { run(o); });
}
