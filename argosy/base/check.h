#pragma once

#include <fmt/format.h>

#include "argosy/base/error.h"

/// Throws UsageError("where", formatted message) unless `condition` holds. Use it for mistakes of
/// the caller.
///
///     ARGOSY_CHECK(n > 0, "data.DataLoader", "batch_size must be positive, got {}", n);
#define ARGOSY_CHECK(condition, where, ...)                          \
  do {                                                               \
    if (!(condition)) [[unlikely]] {                                 \
      throw ::argosy::UsageError((where), fmt::format(__VA_ARGS__)); \
    }                                                                \
  } while (false)

/// Throws InternalError unless `condition` holds. Use it for our own bugs, never for user input.
#define ARGOSY_INVARIANT(condition, where)                                                        \
  do {                                                                                            \
    if (!(condition)) [[unlikely]] {                                                              \
      throw ::argosy::InternalError(                                                              \
          (where),                                                                                \
          fmt::format("broken invariant: {} ({}:{}). This is a bug in Argosy, please report it.", \
                      #condition,                                                                 \
                      __FILE_NAME__,                                                              \
                      __LINE__));                                                                 \
    }                                                                                             \
  } while (false)
