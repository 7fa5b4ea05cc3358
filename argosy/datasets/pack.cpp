#include "argosy/datasets/pack.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <vector>

#include "argosy/formats/packed_sample.h"
#include "argosy/formats/records.h"

namespace argosy::datasets {
namespace {

/// The samples of a split that are written.
std::vector<int64_t> kept_of(const SplitRange& split, const std::vector<int64_t>& leave_out) {
  std::vector<int64_t> all(static_cast<size_t>(split.count));
  std::iota(all.begin(), all.end(), split.first);
  std::vector<int64_t> kept;
  std::ranges::set_difference(all, leave_out, std::back_inserter(kept));
  return kept;
}

/// Height, width and channels where all pictures are pixels and agree.
std::vector<int64_t> common_shape(const Source& source, const std::vector<int64_t>& kept) {
  std::vector<int64_t> shape;
  Scratch scratch;
  for (const int64_t i : kept) {
    const StoredPicture picture = source.get(i, scratch).picture;
    const std::vector<int64_t> own{picture.size.height, picture.size.width, picture.channels};
    if (picture.kind != StoredPicture::Kind::kPixels || (!shape.empty() && own != shape)) {
      return {};
    }
    shape = own;
  }
  return shape;
}

/// What the file says of its splits: those of the source, or the one that is packed.
std::vector<formats::PackedSplit> packed_splits(const Source& source,
                                                const SplitRange& only,
                                                const std::vector<int64_t>& leave_out) {
  std::vector<formats::PackedSplit> splits;
  for (const SplitRange& split :
       only.name.empty() ? source.about().splits : std::vector<SplitRange>{only}) {
    splits.push_back({split.name, std::ssize(kept_of(split, leave_out))});
  }
  return splits;
}

std::vector<std::byte> record_of(const Sample& sample) {
  const StoredPicture& picture = sample.picture;
  return formats::pack_sample({.kind = picture.kind == StoredPicture::Kind::kEncoded
                                           ? formats::PictureKind::kEncoded
                                           : formats::PictureKind::kPixels,
                               .height = picture.size.height,
                               .width = picture.size.width,
                               .channels = picture.channels,
                               .labels = {sample.labels.begin(), sample.labels.end()},
                               .points = {sample.points.begin(), sample.points.end()},
                               .name = sample.name,
                               .picture = std::as_bytes(picture.bytes)});
}

}  // namespace

Packed pack(const Source& source, const std::string& path, const PackOptions& options) {
  const SplitRange split = find_split(source, options.split);
  const std::vector<int64_t> kept = kept_of(split, options.leave_out);
  const About& about = source.about();
  const formats::PackedSet set{.kind = about.packed_from.empty() ? about.set : about.packed_from,
                               .classes = about.classes,
                               .groups = about.groups,
                               .point_names = about.point_names,
                               .shape = common_shape(source, kept),
                               .full = about.full,
                               .splits = packed_splits(source, split, options.leave_out)};
  formats::RecordWriter writer(path, formats::pack_metadata(set));
  Scratch scratch;
  for (const int64_t i : kept) {
    writer.append(record_of(source.get(i, scratch)));
    if (options.on_sample) {
      options.on_sample(writer.size());
    }
  }
  writer.finish();
  std::error_code error;
  return {.samples = std::ssize(kept),
          .bytes = static_cast<int64_t>(std::filesystem::file_size(path, error))};
}

}  // namespace argosy::datasets
