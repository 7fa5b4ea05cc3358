#include <utility>

#include "argosy/formats/records.h"
#include "argosy/samples/sources.h"

namespace argosy::samples {
namespace {

class RecordSource final : public SampleSource {
 public:
  RecordSource(Description description, formats::RecordReader reader)
      : SampleSource(std::move(description)), reader_(std::move(reader)) {}

  [[nodiscard]] int64_t size() const override { return reader_.size(); }
  [[nodiscard]] formats::PackedSample get(int64_t index, std::vector<uint8_t>&) const override {
    return formats::unpack_sample(reader_.record(index), reader_.path(), index);
  }

 private:
  formats::RecordReader reader_;
};

}  // namespace

std::unique_ptr<SampleSource> open_records(const std::string& path) {
  formats::RecordReader reader(path);
  formats::PackedSet set = formats::unpack_metadata(reader.metadata(), path);
  Description description{.set = "records", .path = path};
  description.classes = std::move(set.classes);
  description.point_names = std::move(set.point_names);
  return std::make_unique<RecordSource>(std::move(description), std::move(reader));
}

}  // namespace argosy::samples
