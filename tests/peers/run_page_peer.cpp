// run_page_peer FOLDER STATE [NAME [LR]]: a run's folder as a trainer of two ranks leaves it, with
// figures made up, and its page. STATE is one of running, finished.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "argosy/events/jsonl_writer.h"
#include "argosy/events/timeline.h"
#include "argosy/image/codec.h"
#include "argosy/runs/run_config.h"
#include "argosy/runs/run_page.h"

namespace {

using namespace std::chrono_literals;
using argosy::runs::RunConfig;

constexpr int kSteps = 5000;

/// A repeatable number in [-1, 1).
double noise(int64_t i) {
  uint64_t bits = static_cast<uint64_t>(i + 1) * 0x9e3779b97f4a7c15ULL;
  bits ^= bits >> 31;
  bits *= 0xbf58476d1ce4e5b9ULL;
  return static_cast<double>(bits >> 11) / 4503599627370496.0 - 1;
}

void write_metrics(const std::string& folder, double lr) {
  argosy::events::JsonlWriter metrics(folder + "/metrics.jsonl");
  for (int step = 1; step <= kSteps; ++step) {
    const double progress = static_cast<double>(step) / kSteps;
    const double loss = 2.3 * std::exp(-30 * lr * progress) + 0.12 + 0.06 * noise(step);
    const double rate = 0.5 * lr * (1 + std::cos(3.14159265 * progress));
    const bool broken = step == 1234;
    metrics.write({{"step", step},
                   {"epoch", 1 + (step - 1) / 500},
                   {"split", "train"},
                   {"loss", broken ? std::numeric_limits<double>::quiet_NaN() : loss},
                   {"lr", rate},
                   {"images_per_second", 1850 + 60 * noise(7 * step) - (step % 500 < 8 ? 500 : 0)},
                   {"input_wait", std::max(0.0, 0.03 + 0.02 * noise(3 * step))}});
    if (step % 250 == 0) {
      metrics.write({{"step", step},
                     {"epoch", 1 + (step - 1) / 500},
                     {"split", "eval"},
                     {"loss", 2.2 * std::exp(-24 * lr * progress) + 0.25 + 0.01 * noise(step)},
                     {"metrics",
                      {{"accuracy", 0.93 - 0.8 * std::exp(-40 * lr * progress)},
                       {"top5_accuracy", 0.99 - 0.5 * std::exp(-60 * lr * progress)}}}});
    }
  }
}

void write_timeline(const std::string& folder, int rank) {
  argosy::events::Timeline timeline(folder + "/timeline.rank" + std::to_string(rank) + ".json",
                                    {.rank = rank});
  auto at = std::chrono::steady_clock::now() - 10s;
  for (int step = 0; step < 40; ++step) {
    const auto part = [&](const char* lane, const char* name, std::chrono::microseconds length) {
      timeline.add(lane, name, at, at + length);
      at += length;
    };
    const auto more = std::chrono::microseconds(static_cast<int>(900 + 800 * noise(step + rank)));
    part("input", "wait", more);
    part("compute", "forward", 11ms + more);
    timeline.add("communication", "all_reduce", at + 6ms, at + 22ms + more);
    part("compute", "backward", 21ms);
    part("compute", "optimizer", 3ms);
  }
}

/// A class's picture, as coarse as CIFAR's.
void write_sample(const std::string& folder, int index) {
  argosy::image::Image picture({.height = 32, .width = 32}, argosy::image::Order::kRgb);
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < 32; ++x) {
      uint8_t* pixel = picture.row<uint8_t>(y) + 3 * x;
      const double r = std::hypot(x - 16 + 6 * noise(index), y - 16 + 6 * noise(index + 50));
      pixel[0] = static_cast<uint8_t>(128 + 127 * std::sin(r / 3 + index));
      pixel[1] = static_cast<uint8_t>(128 + 127 * std::sin(r / 4 + 2 * index));
      pixel[2] = static_cast<uint8_t>(128 + 127 * std::cos(r / 5));
    }
  }
  const char* const names[] = {"cat", "dog", "ship", "truck", "frog", "deer"};
  argosy::image::write_file(folder + "/samples/step_5000_" + std::to_string(index) + " is " +
                                names[index % 6] + ", said " + names[(index * index) % 6] + ".png",
                            argosy::image::encode_png(picture));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "run";
  const std::string state = argc > 2 ? argv[2] : "finished";
  const std::string name = argc > 3 ? argv[3] : "cifar10-resnet18 <b>\"&'</b></script>";
  const double lr = argc > 4 ? std::stod(argv[4]) : 0.1;
  RunConfig config = RunConfig::capture(
      {.name = name,
       .command =
           {"argosy", "train", "--model", "resnet18", "--data", "cifar10:data", "--epochs", "10"},
       .ranks = 2});
  config.seed = 1;
  config.started -= 731s;
  config.versions["libtorch"] = "1.13.1";
  config.options = {{"model", "resnet18"},
                    {"data", "cifar10:data"},
                    {"epochs", 10},
                    {"batch_size", 128},
                    {"optimizer", {{"name", "momentum"}, {"lr", lr}, {"weight_decay", 5e-4}}},
                    {"schedule", "cosine"},
                    {"augment", {"crop", "flip <script>alert(1)</script>"}}};
  std::filesystem::create_directories(folder + "/samples");
  write_metrics(folder, lr);
  for (int rank = 0; rank < 2; ++rank) {
    write_timeline(folder, rank);
    argosy::events::JsonlWriter(folder + "/rank" + std::to_string(rank) + ".json")
        .write({{"rank", rank},
                {"host", "node-a"},
                {"device", "cpu"},
                {"threads", 2},
                {"images_per_second", 925.4 - 60 * rank},
                {"input_wait", 0.031 + 0.01 * rank},
                {"comm_wait", 0.052 - 0.02 * rank},
                {"peak_memory_bytes", 1.21e9 + 1e8 * rank}});
  }
  for (int i = 0; i < 12; ++i) {
    write_sample(folder, i);
  }
  if (state == "finished") {
    config.end(argosy::runs::RunState::kFinished, "", 0);
  }
  argosy::runs::write_run_config(folder, config);
  const auto begin = std::chrono::steady_clock::now();
  argosy::runs::write_run_page(folder);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  std::printf("%s/index.html: %ju bytes, written in %.1f ms\n",
              folder.c_str(),
              static_cast<uintmax_t>(std::filesystem::file_size(folder + "/index.html")),
              took.count());
  return 0;
}
