#pragma once

#include "argosy/datasets/source.h"

namespace argosy::datasets {

/// A source whose pictures may be encoded. It decodes them for all such sources.
class EncodedSource : public Source {
 public:
  using Source::Source;
  [[nodiscard]] image::Image decoded(const Sample& sample, const PictureAs& as = {}) const final;
};

}  // namespace argosy::datasets
