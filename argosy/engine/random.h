#pragma once

#include <cstdint>

namespace argosy::engine {

/// Seeds libtorch's generators of every device: initialisation of weights, dropout, randperm.
/// Data loading has streams of its own (data::Random), so loader threads do not disturb these.
void seed_everything(uint64_t seed);

}  // namespace argosy::engine
