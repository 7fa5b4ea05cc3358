#include "argosy/datasets/damage.h"

#include <algorithm>
#include <future>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/thread_pool.h"

namespace argosy::datasets {
namespace {

std::vector<Damage> damage_among(const Source& source, int64_t first, int64_t end) {
  std::vector<Damage> found;
  Scratch scratch;
  for (int64_t i = first; i < end; ++i) {
    try {
      const Sample sample = source.get(i, scratch);
      if (sample.picture.kind == StoredPicture::Kind::kEncoded) {
        (void)source.decoded(sample, {.damaged = image::Damaged::kRaiseTruncated});
      }
    } catch (const DataError& error) {
      found.push_back(
          {.index = i,
           .reason = error.place().index == i ? error.what() : error.with_index(i).what()});
    }
  }
  return found;
}

}  // namespace

std::vector<Damage> find_damage(const Source& source,
                                const SplitRange& split,
                                const FindDamageOptions& options) {
  const int cpus = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  constexpr int64_t kChunk = 64;
  std::vector<std::future<std::vector<Damage>>> parts;
  ThreadPool pool(static_cast<size_t>(options.threads > 0 ? options.threads : cpus), "damage");
  const int64_t end = split.first + split.count;
  for (int64_t first = split.first; first < end; first += kChunk) {
    parts.push_back(pool.submit([&source, first, end] {
      return damage_among(source, first, std::min(first + kChunk, end));
    }));
  }
  std::vector<Damage> all;
  int64_t done = 0;
  for (auto& part : parts) {
    std::ranges::move(part.get(), std::back_inserter(all));
    done = std::min(done + kChunk, split.count);
    if (options.on_samples) {
      options.on_samples(done);
    }
  }
  return all;
}

}  // namespace argosy::datasets
