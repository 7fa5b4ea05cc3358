// Writes logs whose values boards.py knows: FOLDER/tensorboard and FOLDER/visualdl. With "kill" it
// ends by SIGKILL without a word to the writers; with two numbers it is a program that goes on at a
// step: it writes a curve from FROM to before TO, and what came after FROM is purged.
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/events/tensorboard_writer.h"
#include "argosy/events/visualdl_writer.h"
#include "argosy/image/codec.h"

namespace {

using namespace std::chrono_literals;
using argosy::events::TensorBoardWriter;
using argosy::events::VisualDLWriter;

/// 2 × 3 pixels: red and green grow by row and column.
argosy::image::Image picture() {
  argosy::image::Image image({.height = 2, .width = 3}, argosy::image::Order::kRgb);
  for (int y = 0; y < 2; ++y) {
    for (int x = 0; x < 3; ++x) {
      uint8_t* pixel = image.row<uint8_t>(y) + 3 * x;
      pixel[0] = static_cast<uint8_t>(100 * y);
      pixel[1] = static_cast<uint8_t>(50 * x);
      pixel[2] = 7;
    }
  }
  return image;
}

std::vector<float> values() {
  std::vector<float> all;
  for (int i = -500; i < 1500; ++i) {
    all.push_back(static_cast<float>(i) / 1000);
  }
  all.push_back(std::numeric_limits<float>::quiet_NaN());
  return all;
}

template <typename Writer>
void write(Writer& writer) {
  const typename Writer::WallTime at{1700000000500ms};
  for (int64_t step = 0; step < 100; ++step) {
    writer.add_scalar("loss/train", 1.0 / static_cast<double>(step + 1), 10 * step, at + step * 1s);
  }
  writer.add_scalar("broken", std::nan(""), 1);
  writer.add_scalar("far", 1e6, int64_t{1} << 40);
  writer.add_scalars("both", {{"train", 0.25}, {"eval", 0.5}}, 4, at);
  writer.add_image("picture", picture(), 5, at);
  const std::vector<uint8_t> png = argosy::image::encode_png(picture());
  writer.add_image("png", std::span<const uint8_t>(png), 6, at);
  writer.add_histogram("weights", values(), 7);
  writer.add_histogram("none", {}, 7);
  writer.add_text("note", "**größer** \xff", 8, at);
}

void go_on(const std::string& folder, int64_t from, int64_t to) {
  const std::optional<int64_t> purge = from > 0 ? std::optional(from) : std::nullopt;
  TensorBoardWriter board(folder + "/tensorboard", {.purge_step = purge});
  for (int64_t step = from; step < to; ++step) {
    board.add_scalar("loss", static_cast<double>(1000 * from + step), step);
    board.add_scalars("both", {{"train", static_cast<double>(1000 * from + step)}}, step);
  }
  std::raise(SIGKILL);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  if (argc > 3) {
    go_on(folder, std::stoll(argv[2]), std::stoll(argv[3]));
  }
  TensorBoardWriter board(folder + "/tensorboard");
  VisualDLWriter log(folder + "/visualdl", {.display_name = "the run"});
  write(board);
  write(log);
  if (argc > 2 && std::string_view(argv[2]) == "kill") {
    std::raise(SIGKILL);
  }
  board.flush();
  log.flush();
  board.close();
  log.close();
  return 0;
}
