#include "argosy/datasets/row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/datasets/sets.h"

namespace argosy::datasets {

// Addresses are those of the sets' authors, of torchvision and of Paddle: the last have no limit of
// connections and are near to China, the others near to the rest of the world.
const std::vector<const Row*>& rows() {
  static const std::vector<const Row*> all{&mnist(),
                                           &fashion_mnist(),
                                           &mnist_json(),
                                           &cifar10(),
                                           &cifar100(),
                                           &flowers102(),
                                           &keypoints(),
                                           &folder(),
                                           &records()};
  return all;
}

const Row* find_row(std::string_view name) {
  const auto found = std::ranges::find(rows(), name, &Row::name);
  return found == rows().end() ? nullptr : *found;
}

const Row& row_of(std::string_view name) {
  if (const Row* row = find_row(name)) {
    return *row;
  }
  std::vector<std::string> names;
  std::ranges::transform(rows(), std::back_inserter(names), &Row::name);
  const auto meant = strings::closest(name, names);
  throw UsageError("datasets.name",
                   fmt::format("unknown data set \"{}\". {}",
                               name,
                               meant ? fmt::format("Did you mean {}?", *meant)
                                     : fmt::format("Expected one of {}", fmt::join(names, ", "))));
}

}  // namespace argosy::datasets
