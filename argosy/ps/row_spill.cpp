#include "argosy/ps/row_spill.h"

#include <algorithm>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/base/text.h"

namespace argosy::ps {
namespace {

constexpr size_t kLeastCache = size_t{1} << 20;

size_t cache_of(const SpillOptions& options) {
  ARGOSY_CHECK(options.memory_limit > 0,
               "ps.disk",
               "memory_limit must be 1 byte or more for rows to go to disk");
  return std::max(options.memory_limit / 4, kLeastCache);
}

}  // namespace

RowSpill::RowSpill(const SpillOptions& options)
    : for_rows_(options.memory_limit - std::min(options.memory_limit, cache_of(options))),
      disk_(options.directory, cache_of(options)) {}

size_t RowSpill::quota() const {
  return for_rows_ / std::max<size_t>(partitions_, 1);
}

SpillPart::SpillPart(std::shared_ptr<RowSpill> server) : server_(std::move(server)) {
  server_->add_partition();
}

SpillPart::~SpillPart() {
  server_->remove_partition();
}

void SpillPart::count(ptrdiff_t rows, ptrdiff_t others) {
  rows_ += rows;
  others_ += others;
}

double SpillPart::excess() {
  const auto rows = static_cast<double>(rows_);
  const auto others = static_cast<double>(others_);
  const auto quota = static_cast<double>(server_->quota());
  if (others > quota && !said_.exchange(true)) {
    log::warn(
        "[ps.disk] the ids of a partition take {} of memory alone, and memory_limit leaves it {}: "
        "rows are in memory only while they change. Raise memory_limit, or take more servers",
        text::bytes(others),
        text::bytes(quota));
  }
  return rows <= 0 ? 0 : std::clamp((rows + others - quota) / rows, 0.0, 1.0);
}

}  // namespace argosy::ps
