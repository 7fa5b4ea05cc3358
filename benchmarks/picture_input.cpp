// Batches of pictures, delivered and not trained on, in one process as a user writes it.
//
//     bench_picture_input flowers|cifar10|mnist PATH [--num_workers 0] [--epochs 3] [--batch 32]
//         [--channels_last] [--first_batch]
//
// flowers: a folder of JPEGs for each class; RandomResizedCrop(224), flip, normalize; batches of
// 32. cifar10: the binary archive; RandomCrop(32, padding 4), flip, normalize; batches of 128.
// mnist: the four IDX files, ToTensor; batches of 100. One sample for each epoch.
// --first_batch: ends with the first batch; its sample is the time since STARTED (nanoseconds of
// the clock, in the environment). The peers are peers/picture_input.py and
// peers/picture_input_dali.py.
#include <argosy/argosy.h>

#include <chrono>
#include <cstdlib>

#include <torch/torch.h>

#include "argosy/program/command_line.h"

#include "benchmarks/workload.h"

namespace {

using namespace argosy;

struct Options {
  std::string work{};
  std::string path{};
  int num_workers = 0;
  int epochs = 3;
  int64_t batch = 0;  ///< 0: the work's
  bool channels_last = false;
  bool first_batch = false;
};

double ms_since_started() {
  const char* started = std::getenv("STARTED");
  if (started == nullptr) {
    throw UsageError("bench", "--first_batch needs STARTED in the environment");
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return (std::chrono::duration<double, std::nano>(now).count() - std::stod(started)) / 1e6;
}

void publish(const Options& options,
             const std::vector<double>& samples_ms,
             int64_t images,
             double mean) {
  bench::Report report(options.work);
  report.numbers("samples_ms", samples_ms);
  report.number("images", static_cast<double>(images));
  report.number("mean", mean);
  if (!options.first_batch) {
    bench::add_versions(report);
  }
  report.print();
}

template <typename Loader>
void deliver(Loader& loader, const Options& options) {
  std::vector<double> samples_ms;
  int64_t images = 0;
  double mean = 0;
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    images = 0;
    const bench::Stopwatch watch;
    for (auto& [pixels, labels] : loader) {
      if (options.first_batch) {
        publish(
            options, {ms_since_started()}, pixels.size(0), pixels.mean().template item<double>());
        return;
      }
      images += pixels.size(0);
      if (epoch == 0) {  // checks what is delivered, and is not timed
        mean += pixels.mean().template item<double>() * static_cast<double>(pixels.size(0));
      }
    }
    if (epoch > 0) {
      samples_ms.push_back(watch.ms());
    }
  }
  publish(options, samples_ms, images, mean / static_cast<double>(images));
}

template <typename Set>
void deliver_set(const Set& set, int64_t batch_size, const Options& options) {
  data::DataLoader loader(set,
                          {.batch_size = options.batch > 0 ? options.batch : batch_size,
                           .shuffle = true,
                           .num_workers = options.num_workers,
                           .memory_format = options.channels_last ? at::MemoryFormat::ChannelsLast
                                                                  : at::MemoryFormat::Contiguous});
  deliver(loader, options);
}

void run(const Options& options) {
  at::set_num_threads(1);
  if (options.work == "flowers") {
    const vision::DatasetFolder set(
        options.path,
        {.transform = {vision::RandomResizedCrop(224),
                       vision::RandomHorizontalFlip(),
                       vision::ToTensor(),
                       vision::Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})}});
    deliver_set(set, 32, options);
  } else if (options.work == "cifar10") {
    const vision::Cifar10 set(
        options.path,
        vision::Split::kTrain,
        {.transform = {vision::RandomCrop(32, {.padding = 4}),
                       vision::RandomHorizontalFlip(),
                       vision::ToTensor(),
                       vision::Normalize({0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616})}});
    deliver_set(set, 128, options);
  } else {
    deliver_set(vision::Mnist(options.path, vision::Split::kTrain), 100, options);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  return argosy::program::run(
      {"Batches of pictures, delivered and not trained on."},
      {{"work",
        "",
        "What is delivered",
        &o.work,
        {.words = "flowers|cifar10|mnist", .required = true}},
       {"path", "", "The files", &o.path, {.required = true}},
       {"--num_workers", "N", "Loader threads", &o.num_workers, {.least = 0, .most = 64}},
       {"--epochs", "N", "The first is not timed", &o.epochs, {.least = 2, .most = 1000}},
       {"--batch", "N", "Pictures of a batch", &o.batch, {.least = 1, .most = 100000}},
       {"--channels_last", "", "Memory format of the batches", &o.channels_last},
       {"--first_batch", "", "End with it", &o.first_batch}},
      argc,
      argv,
      [&] { run(o); });
}
