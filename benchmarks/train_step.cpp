// Time of a training step: forward, backward with reduction, Adam, zero_grad.
//
//     argosy launch --nproc_per_node 2 bench_train_step resnet18|resnet50|resnet18_sized|mnist_cnn
//         [--steps 60] [--warmup 15] [--independent | --share_parameters --overlap_update]
//         [--batch 100] [--side 96] [--virtual_ranks 8 | --together 4] [--device cpu|cuda:0]
//         [--amp bf16] [--memory_format auto] [--pictures FOLDER --num_workers 16]
//
// The peer is peers/train_step.py: same weights, same data, same order. --independent: the ranks
// train beside each other without a word, which is the floor that coupling is measured from.
// --virtual_ranks: the loop goes over fleet::updates(), with a batch for each virtual rank.
// --together: the same samples without virtual ranks, the batches of several as one.
// --pictures: the batches are a folder's JPEGs, read, cut to 224 and copied to the device beside
// the steps.
#include <argosy/argosy.h>

#include <chrono>
#include <iterator>
#include <numeric>
#include <optional>

#include <torch/torch.h>

#include "argosy/base/check.h"
#include "argosy/base/even_part.h"
#include "argosy/engine/autocast.h"
#include "argosy/engine/layout.h"
#include "argosy/engine/memory_format.h"
#include "argosy/program/command_line.h"

#include "benchmarks/op_profile.h"
#include "benchmarks/workload.h"

namespace {

using namespace argosy;

struct Options {
  std::string model;
  std::string device = "cpu";
  std::string amp{};  ///< "": full precision
  std::string memory_format = "auto";
  std::string pictures{};
  int num_workers = 0;
  int steps = 60;
  int warmup = 15;
  int64_t batch = 0;          ///< of a virtual rank; 0: the model's
  int64_t side = 96;          ///< of a color image
  int64_t virtual_ranks = 0;  ///< 0: the loop does not know of any
  int64_t together = 1;       ///< so many batches are one
  bool independent = false;
  bool in_step = false;
  bool share_parameters = false;
  bool overlap_update = false;
  bool profile = false;
  bool as_it_comes = false;
  bool drift_unchecked = false;
  bool gradients_unchecked = false;
};

constexpr int64_t kBatch = 100;
constexpr int64_t kColorBatch = 32;
constexpr int64_t kBatches = 8;  // of each virtual rank, in turns

bool is_color(const Options& options) {
  return options.model == "resnet18" || options.model == "resnet50";
}

/// Equal on all ranks and on the peer: the parameters' sum.
std::pair<double, bool> checksum(const engine::NamedTensors& parameters) {
  torch::NoGradGuard no_grad;
  at::Tensor sum = torch::zeros({1}, torch::kDouble);
  for (const auto& [name, p] : parameters) {
    sum += p.to(torch::kDouble).sum().cpu();
  }
  at::Tensor low = sum.clone();
  at::Tensor high = sum.clone();
  comm::all_reduce(low, fleet::group(), {.op = comm::ReduceOp::kMin});
  comm::all_reduce(high, fleet::group(), {.op = comm::ReduceOp::kMax});
  return {sum.item<double>(), torch::equal(low, high)};
}

/// Of each step, over the ranks: either may have the slower core. kAvg: of a typical rank; kMax: of
/// the one that the others would wait for.
std::vector<double> over_ranks(const std::vector<double>& samples, comm::ReduceOp op) {
  const at::Tensor all = torch::tensor(samples, torch::kDouble);
  comm::all_reduce(all, fleet::group(), {.op = op});
  const auto* const values = all.data_ptr<double>();
  return {values, values + all.numel()};
}

/// Parameters and gradients.
double model_mb(const engine::NamedTensors& parameters) {
  double bytes = 0;
  for (const auto& [name, p] : parameters) {
    bytes += 2.0 * static_cast<double>(p.nbytes());
  }
  return bytes / 1e6;
}

/// Milliseconds of a step by libtorch operator, of rank 0.
void print_profile(int steps, double step_ms) {
  if (!fleet::is_first_worker()) {
    return;
  }
  double rest = step_ms;
  for (const bench::OpProfile::Row& row : bench::OpProfile::rows()) {
    const double ms = row.ms / steps;
    rest -= ms;
    if (ms > step_ms / 500) {
      fmt::print("{:8.3f} ms {:5.1f} % {:7.1f} calls  {}\n",
                 ms,
                 100 * ms / step_ms,
                 static_cast<double>(row.calls) / steps,
                 row.name);
    }
  }
  fmt::print("{:8.3f} ms {:5.1f} %                outside of operators\n{:8.3f} ms a step\n",
             rest,
             100 * rest / step_ms,
             step_ms);
}

/// What a device still computes belongs to the step that asked for it.
void wait_for(const at::Device& device) {
  if (device.is_cuda()) {
    torch::cuda::synchronize(device.index());
  }
}

/// What the wrapper says of each step; nothing where there is none.
struct StepStats {
  std::vector<double> backward_ms;
  std::vector<double> exposed_ms;    ///< the part of the reduction that backward waits for
  std::vector<double> bucket_bytes;  ///< in the order of reduction

  template <typename Model>
  void add(const Model& model) {
    if constexpr (requires { model.stats(); }) {
      using Ms = std::chrono::duration<double, std::milli>;
      const auto stats = model.stats();
      backward_ms.push_back(Ms(stats.backward).count());
      exposed_ms.push_back(Ms(stats.exposed).count());
      bucket_bytes.clear();
      for (const auto& bucket : stats.buckets) {
        bucket_bytes.push_back(static_cast<double>(bucket.bytes));
      }
    }
  }
};

/// A loader for fleet::updates() of batches that are there already, so that a step loads nothing.
class ReadyBatches final {
 public:
  /// `batches` of each virtual rank of this process, from its first one on.
  ReadyBatches(std::vector<std::vector<bench::Batch>> batches, int64_t first, int64_t updates)
      : batches_(std::move(batches)), first_(first), updates_(updates) {}

  class Iterator final {
   public:
    explicit Iterator(ReadyBatches* loader) : loader_(loader) {}
    bench::Batch& operator*() const { return loader_->batch(); }
    Iterator& operator++() {
      ++loader_->at_;
      return *this;
    }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) {
      return it.loader_->current() == it.loader_->size();
    }

   private:
    ReadyBatches* loader_;
  };

  [[nodiscard]] Iterator begin() { return Iterator(this); }
  [[nodiscard]] static std::default_sentinel_t end() { return {}; }
  [[nodiscard]] int64_t size() const { return updates_ * leaves(); }
  [[nodiscard]] int64_t current() const { return at_; }
  [[nodiscard]] static int64_t epoch_of_loop() { return 0; }
  static void set_in_passes(bool /*inside*/) {}  // has no place that a checkpoint could save
  [[nodiscard]] data::BatchTurns turns() const {
    return {.virtual_ranks = fleet::virtual_ranks(), .first = first_, .leaves = leaves()};
  }

 private:
  [[nodiscard]] int64_t leaves() const { return static_cast<int64_t>(batches_.size()); }
  [[nodiscard]] bench::Batch& batch() {
    return batches_[static_cast<size_t>(at_ % leaves())][at_ / leaves() % kBatches];
  }

  std::vector<std::vector<bench::Batch>> batches_;
  int64_t first_;
  int64_t updates_;
  int64_t at_ = 0;
};

/// Calls `update` for each update of a loop that knows of no virtual ranks, with what makes its
/// gradients and returns the loss.
template <typename Loss>
auto plain_loop(const Options& options, Loss loss_of_step) {
  return [=](auto& model, const auto& update) {
    for (int step = 0; step < options.warmup + options.steps; ++step) {
      update([&] {
        at::Tensor loss = loss_of_step(model, step);
        loss.backward();
        return loss.detach();
      });
    }
  };
}

template <typename Model, typename Optimizer, typename Loop>
void measure_with(const Options& options, Model model, Optimizer optimizer, Loop loop) {
  std::vector<double> samples_ms;
  std::vector<at::Tensor> losses;
  StepStats stats;
  std::optional<bench::OpProfile> profile;
  const at::Device device(options.device);
  fleet::barrier_worker();
  int step = 0;
  loop(model, [&](const auto& gradients) {
    if (options.profile && step == options.warmup) {
      profile.emplace();
    }
    const bench::Stopwatch watch;
    if (options.in_step) {
      fleet::barrier_worker();
    }
    losses.push_back(gradients());
    optimizer.step();
    optimizer.zero_grad();
    wait_for(device);
    if (step >= options.warmup) {
      samples_ms.push_back(watch.ms());
      stats.add(model);
    }
    ++step;
  });
  if (profile) {
    profile.reset();
    const double total = std::accumulate(samples_ms.begin(), samples_ms.end(), 0.0);
    print_profile(options.steps, total / options.steps);
    return;
  }
  const double memory = bench::pss_mb();
  const double data = bench::pss_of_data_mb();
  const auto [sum, agree] = checksum(engine::named_parameters(model));
  const std::vector<double> typical = over_ranks(samples_ms, comm::ReduceOp::kAvg);
  const std::vector<double> slowest = over_ranks(samples_ms, comm::ReduceOp::kMax);
  if (fleet::is_first_worker()) {
    bench::Report report(options.model);
    report.number("ranks", fleet::worker_num());
    report.number("virtual_ranks", static_cast<double>(fleet::virtual_ranks()));
    report.number("batch", static_cast<double>(options.batch * options.together));
    report.numbers("samples_ms", typical);
    report.numbers("slowest_ms", slowest);
    report.numbers("backward_ms", stats.backward_ms);
    report.numbers("exposed_ms", stats.exposed_ms);
    report.numbers("bucket_bytes", stats.bucket_bytes);
    report.number("loss_first", losses.front().item<double>());
    report.number("loss_last", losses.back().item<double>());
    report.number("checksum", sum);
    report.number("pss_mb", memory);
    report.number("pss_of_data_mb", data);
    report.number("model_mb", model_mb(engine::named_parameters(model)));
    report.text("ranks_agree", agree || options.independent ? "yes" : "no");
    bench::add_versions(report);
    report.print();
  }
}

template <typename Net, typename Loop>
void measure(const Options& options, Net net, Loop loop) {
  if (options.independent) {
    measure_with(options, net, optim::Adam(net, {.lr = 1e-3}), loop);
  } else {
    auto model = fleet::distributed_model(net);
    measure_with(
        options, model, fleet::distributed_optimizer(optim::Adam(model, {.lr = 1e-3})), loop);
  }
}

/// A batch of a virtual rank, whoever computes it.
bench::Batch batch_of(const Options& options, int64_t virtual_rank, int64_t number) {
  const int64_t seed = 100 * virtual_rank + number;
  return is_color(options)
             ? bench::color_batch(options.batch, options.side, seed, at::Device(options.device))
             : bench::image_batch(options.batch, seed);
}

/// The batches of `virtual_ranks`, in each step those of all of them as one.
std::vector<bench::Batch> batches_of(const Options& options, const IndexRange& virtual_ranks) {
  const at::Device device(options.device);
  std::vector<bench::Batch> batches;
  for (int64_t number = 0; number < kBatches; ++number) {
    std::vector<at::Tensor> images;
    std::vector<at::Tensor> labels;
    for (int64_t each = virtual_ranks.begin; each < virtual_ranks.end; ++each) {
      bench::Batch part = batch_of(options, each, number);
      images.push_back(std::move(part.images));
      labels.push_back(std::move(part.labels));
    }
    at::Tensor together = torch::cat(images).to(device);
    // By itself fleet does it in each step.
    if (is_color(options) && (options.independent || options.memory_format == "channels_last")) {
      together = together.contiguous(at::MemoryFormat::ChannelsLast);
    }
    batches.push_back({std::move(together), torch::cat(labels).to(device)});
  }
  return batches;
}

template <typename Model>
at::Tensor loss_on(const Options& options, Model& model, const bench::Batch& batch) {
  std::optional<engine::Autocast> autocast;
  if (!options.amp.empty()) {
    autocast.emplace(engine::AutocastOptions{.device = at::Device(options.device).type(),
                                             .dtype = at::kBFloat16});
  }
  return torch::nn::functional::cross_entropy(model(batch.images), batch.labels);
}

/// Steps whose batches are a folder's pictures, from the first again at the end.
template <typename Net>
void measure_on_pictures(const Options& options, Net net) {
  const vision::DatasetFolder set(
      options.pictures,
      {.transform = {vision::RandomResizedCrop(224),
                     vision::RandomHorizontalFlip(),
                     vision::ToTensor(),
                     vision::Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})}});
  const bool channels_last = options.memory_format == "channels_last";
  data::DataLoader loader(set,
                          {.batch_size = options.batch,
                           .shuffle = true,
                           .drop_last = true,
                           .num_workers = options.num_workers,
                           .memory_format = channels_last ? at::MemoryFormat::ChannelsLast
                                                          : at::MemoryFormat::Contiguous,
                           .device = at::Device(options.device)});
  std::optional<decltype(loader.begin())> at;
  measure(options, net, plain_loop(options, [&](auto& model, int) {
            if (!at || ++*at == loader.end()) {
              at.emplace(loader.begin());
            }
            auto& [images, labels] = **at;
            return loss_on(options, model, bench::Batch{images, labels});
          }));
}

template <typename Net>
void measure_on(const Options& options, Net net) {
  net->to(at::Device(options.device));
  if (!options.pictures.empty()) {
    measure_on_pictures(options, net);
    return;
  }
  const int rank = fleet::worker_index();
  if (options.virtual_ranks > 0) {
    const IndexRange own = even_part(fleet::virtual_ranks(), fleet::worker_num(), rank);
    std::vector<std::vector<bench::Batch>> batches;
    for (int64_t each = own.begin; each < own.end; ++each) {
      batches.push_back(batches_of(options, {each, each + 1}));
    }
    ReadyBatches loader(std::move(batches), own.begin, options.warmup + options.steps);
    measure(options, net, [&](auto& model, const auto& step) {
      for (auto& update : fleet::updates(loader)) {
        step([&] {
          at::Tensor first;
          for (const bench::Batch& batch : update) {
            at::Tensor loss = loss_on(options, model, batch);
            loss.backward();
            first = first.defined() ? first : loss.detach();
          }
          return first;
        });
      }
    });
    return;
  }
  const std::vector<bench::Batch> batches =
      batches_of(options, {rank * options.together, (rank + 1) * options.together});
  measure(options, net, plain_loop(options, [&](auto& model, int step) {
            return loss_on(options, model, batches[step % kBatches]);
          }));
}

/// The peer's weights.
void measure_resnet(const Options& options) {
  vision::ResNet net({.depth = options.model == "resnet50" ? 50 : 18});
  bench::fill_weights(*net);
  if (options.independent) {  // fleet does the same by itself: memory_format = auto
    engine::to_channels_last(*net);
  }
  measure_on(options, net);
}

void run(Options options) {
  using engine::MemoryFormat;
  ARGOSY_CHECK(options.virtual_ranks == 0 || (!options.independent && options.together == 1),
               "bench.train_step",
               "--virtual_ranks excludes --independent and --together");
  ARGOSY_CHECK(options.pictures.empty() || (is_color(options) && options.virtual_ranks == 0),
               "bench.train_step",
               "--pictures is for a ResNet without --virtual_ranks");
  fleet::init({.divide_update = !options.as_it_comes,
               .share_parameters = options.share_parameters,
               .overlap_update = options.overlap_update,
               .virtual_ranks = options.virtual_ranks,
               .check_drift = !options.drift_unchecked,
               .on_nonfinite = options.gradients_unchecked ? "ignore" : "warn",
               .memory_format = options.as_it_comes
                                    ? MemoryFormat::kContiguous
                                    : engine::memory_format(options.memory_format).value()});
  if (options.batch == 0) {
    options.batch = is_color(options) ? kColorBatch : kBatch;
  }
  if (options.model == "resnet18_sized") {
    ARGOSY_CHECK(options.device == "cpu" && options.virtual_ranks == 0,
                 "bench.train_step",
                 "resnet18_sized takes neither --device nor --virtual_ranks");
    measure(options,
            bench::ResNet18Sized(fleet::worker_index()),
            plain_loop(options, [](auto& model, int) { return model(); }));
  } else if (is_color(options)) {
    measure_resnet(options);
  } else {
    vision::MnistCnn net;
    bench::fill_weights(*net);
    measure_on(options, net);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  return argosy::program::run(
      {"Time of a training step of DistributedDataParallel."},
      {{"model",
        "",
        "",
        &o.model,
        {.words = "resnet18|resnet50|resnet18_sized|mnist_cnn", .required = true}},
       {"--independent", "", "Without any exchange between the ranks", &o.independent},
       {"--in_step", "", "Each step begins on all ranks at once", &o.in_step},
       {"--share_parameters", "", "One copy for all ranks", &o.share_parameters},
       {"--overlap_update", "", "Updates beside backward", &o.overlap_update},
       {"--as_it_comes",
        "",
        "Row-major memory, the whole update on each rank; and ARGOSY_MALLOC=default "
        "beside it: what libtorch does by itself",
        &o.as_it_comes},
       {"--drift_unchecked", "", "check_drift = false", &o.drift_unchecked},
       {"--gradients_unchecked", "", "on_nonfinite = ignore", &o.gradients_unchecked},
       {"--profile", "", "Print the time of libtorch's operators instead", &o.profile},
       {"--device", "NAME", "Where the networks compute: cpu, cuda:0, …", &o.device},
       {"--pictures", "FOLDER", "Of JPEGs, a folder for each class", &o.pictures},
       {"--num_workers", "N", "Threads that read them", &o.num_workers, {.least = 0}},
       {"--amp", "DTYPE", "Mixed precision", &o.amp, {.words = "bf16"}},
       {"--memory_format",
        "NAME",
        "Of images and weights",
        &o.memory_format,
        {.words = "auto|contiguous|channels_last"}},
       {"--steps", "N", "Measured steps", &o.steps, {.least = 1, .most = 100000}},
       {"--warmup", "N", "Steps before them", &o.warmup, {.least = 0, .most = 100000}},
       {"--batch", "N", "Images of a batch", &o.batch, {.least = 1, .most = 100000}},
       {"--side", "N", "Side of a color image", &o.side, {.least = 8, .most = 4096}},
       {"--virtual_ranks",
        "V",
        "A batch for each of V virtual ranks, by fleet::updates()",
        &o.virtual_ranks,
        {.least = 1, .most = 4096}},
       {"--together",
        "N",
        "The batches of N virtual ranks as one, without virtual ranks",
        &o.together,
        {.least = 1, .most = 4096}}},
      argc,
      argv,
      [&] { run(o); });
}
