#include "argosy/datasets/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <future>
#include <limits>
#include <set>
#include <span>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/thread_pool.h"
#include "argosy/image/codec.h"

namespace argosy::datasets {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Limits {
  double least = kInfinity;
  double most = -kInfinity;

  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  void add(const Limits& other) {
    least = std::min(least, other.least);
    most = std::max(most, other.most);
  }
  [[nodiscard]] Extremes range() const { return least > most ? Extremes{} : Extremes{least, most}; }
};

/// Sums over the samples of one thread; added up in the samples' order, so that the figures do not
/// depend on the number of threads: all are whole numbers.
struct Tally {
  std::vector<int64_t> per_class{};
  int64_t without_label = 0;
  Limits height{};
  Limits width{};
  std::set<int64_t> channels{};
  int64_t pictures = 0;
  Limits pixels{};
  std::array<int64_t, 4> pixel_count{};
  std::array<int64_t, 4> pixel_sum{};
  std::array<int64_t, 4> pixel_square_sum{};
  Limits points{};
  std::vector<int64_t> unknown_points{};
  int64_t without_points = 0;
  int64_t damaged = 0;
  std::string first_damage{};
  int64_t unusable = 0;
  std::vector<std::string> first_unusable{};

  void add(const Tally& other) {
    per_class.resize(std::max(per_class.size(), other.per_class.size()));
    for (size_t i = 0; i < other.per_class.size(); ++i) {
      per_class[i] += other.per_class[i];
    }
    for (size_t i = 0; i < unknown_points.size(); ++i) {
      unknown_points[i] += other.unknown_points[i];
    }
    for (size_t i = 0; i < pixel_sum.size(); ++i) {
      pixel_count.at(i) += other.pixel_count.at(i);
      pixel_sum.at(i) += other.pixel_sum.at(i);
      pixel_square_sum.at(i) += other.pixel_square_sum.at(i);
    }
    without_label += other.without_label;
    without_points += other.without_points;
    height.add(other.height);
    width.add(other.width);
    channels.insert(other.channels.begin(), other.channels.end());
    pictures += other.pictures;
    pixels.add(other.pixels);
    points.add(other.points);
    first_damage = damaged > 0 ? first_damage : other.first_damage;
    damaged += other.damaged;
    unusable += other.unusable;
    first_unusable.insert(
        first_unusable.end(), other.first_unusable.begin(), other.first_unusable.end());
    first_unusable.resize(std::min(first_unusable.size(), Survey::kMostTold));
  }

  void add_unusable(const std::string& words) {
    ++unusable;
    if (first_unusable.size() < Survey::kMostTold) {
      first_unusable.push_back(words);
    }
  }
};

void count_label(const Source& source, int64_t label, int64_t index, Tally& tally) {
  // Of a record file without names of classes: as many as there are labels.
  constexpr int64_t kMostClasses = 1 << 16;
  if (source.about().classes.empty() && label >= std::ssize(tally.per_class) &&
      label < kMostClasses) {
    tally.per_class.resize(static_cast<size_t>(label) + 1);
  }
  if (label < 0 || label >= std::ssize(tally.per_class)) {
    throw DataError("datasets.survey",
                    fmt::format("label {} is not one of {} classes", label, tally.per_class.size()),
                    {.path = source.about().path, .index = index});
  }
  ++tally.per_class[static_cast<size_t>(label)];
}

void count_shape(const Sample& sample, Tally& tally) {
  const StoredPicture& picture = sample.picture;
  image::Size size = picture.size;
  int channels = picture.channels;
  if (picture.kind == StoredPicture::Kind::kEncoded) {
    const image::ImageInfo info = image::probe(picture.bytes, sample.name);
    size = info.size;
    channels = info.channels;
  }
  tally.height.add(size.height);
  tally.width.add(size.width);
  tally.channels.insert(channels);
}

void count_points(const Sample& sample, Tally& tally) {
  if (sample.points.size() < 2 * tally.unknown_points.size()) {
    ++tally.without_points;  // a split without points
    return;
  }
  for (size_t i = 0; i < tally.unknown_points.size(); ++i) {
    const float x = sample.points[2 * i];
    const float y = sample.points[2 * i + 1];
    if (std::isfinite(x) && std::isfinite(y)) {
      tally.points.add(x);
      tally.points.add(y);
    } else {
      ++tally.unknown_points[i];
    }
  }
}

void count_pixels(const image::Image& picture, Tally& tally) {
  const auto channels = static_cast<size_t>(picture.channels());
  std::array<std::array<int64_t, 256>, 4> histogram{};
  for (int y = 0; y < picture.height(); ++y) {
    const auto* row = picture.row<uint8_t>(y);
    for (size_t i = 0; i < picture.row_bytes(); ++i) {
      ++histogram.at(i % channels).at(row[i]);
    }
  }
  for (size_t channel = 0; channel < channels; ++channel) {
    for (int64_t value = 0; value < 256; ++value) {
      const int64_t count = histogram.at(channel).at(static_cast<size_t>(value));
      if (count > 0) {
        tally.pixels.add(static_cast<double>(value));
      }
      tally.pixel_count.at(channel) += count;
      tally.pixel_sum.at(channel) += count * value;
      tally.pixel_square_sum.at(channel) += count * value * value;
    }
  }
  ++tally.pictures;
}

struct Chunk {
  int64_t first = 0;
  int64_t end = 0;
};

Tally tally_of(const Source& source, Chunk chunk, int64_t pictures) {
  Tally tally;
  tally.per_class.resize(source.about().classes.size());
  tally.unknown_points.resize(source.about().point_names.size());
  Scratch scratch;
  for (int64_t i = chunk.first; i < chunk.end; ++i) {
    // Sample i is decoded when the evenly spaced numbers step over it.
    const bool decode = (i + 1) * pictures / source.size() > i * pictures / source.size();
    try {
      const Sample sample = source.get(i, scratch);
      const bool tags = source.about().task == Task::kTags;
      for (const int64_t label : sample.labels.first(
               tags ? sample.labels.size() : std::min<size_t>(1, sample.labels.size()))) {
        count_label(source, label, i, tally);
      }
      tally.without_label += sample.labels.empty() ? 1 : 0;
      count_points(sample, tally);
      count_shape(sample, tally);
      if (decode) {
        count_pixels(source.decoded(sample), tally);
      }
    } catch (const DataError& error) {
      if (error.place().index == i) {
        tally.add_unusable(error.what());  // a wrong label, a damaged record, not the picture
      } else if (tally.damaged++ == 0) {
        tally.first_damage = error.with_index(i).what();
      }
    }
  }
  return tally;
}

Survey survey_of(const Tally& tally, const Source& source) {
  Survey result{.samples = source.size(),
                .per_class = tally.per_class,
                .without_label = tally.without_label,
                .height = tally.height.range(),
                .width = tally.width.range(),
                .channels = {tally.channels.begin(), tally.channels.end()},
                .pictures = tally.pictures,
                .pixels = tally.pixels.range(),
                .points = tally.points.range(),
                .unknown_points = tally.unknown_points,
                .without_points = tally.without_points,
                .damaged = tally.damaged,
                .first_damage = tally.first_damage,
                .unusable = tally.unusable,
                .first_unusable = tally.first_unusable};
  const bool alike =
      std::ranges::count_if(tally.pixel_count, [](int64_t n) { return n > 0; }) > 0 &&
      result.channels.size() == 1;
  for (size_t i = 0; alike && i < static_cast<size_t>(std::min<int64_t>(result.channels[0], 4));
       ++i) {
    const auto count = static_cast<double>(tally.pixel_count.at(i));
    const double mean = static_cast<double>(tally.pixel_sum.at(i)) / count;
    const double square = static_cast<double>(tally.pixel_square_sum.at(i)) / count;
    result.figures.push_back({mean / 255, std::sqrt(std::max(0.0, square - mean * mean)) / 255});
  }
  return result;
}

}  // namespace

Survey survey(const Source& source, const SurveyOptions& options) {
  const int64_t size = source.size();
  const int64_t pictures = options.pictures == 0 ? size : std::min(options.pictures, size);
  const int cpus = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int threads = options.threads > 0 ? options.threads : cpus;
  constexpr int64_t kChunk = 256;
  std::vector<std::future<Tally>> parts;
  ThreadPool pool(static_cast<size_t>(threads), "survey");
  for (int64_t first = 0; first < size; first += kChunk) {
    parts.push_back(pool.submit([&source, first, size, pictures] {
      return tally_of(source, {first, std::min(first + kChunk, size)}, pictures);
    }));
  }
  Tally all = tally_of(source, {}, pictures);
  for (std::future<Tally>& part : parts) {
    all.add(part.get());
  }
  return survey_of(all, source);
}

}  // namespace argosy::datasets
