#include "argosy/transport/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "argosy/base/catalogue.h"

namespace argosy::transport {
namespace {

/// "300 s", "250 ms"
std::string in_words(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? fmt::format("{} s", time.count() / 1000)
                                  : fmt::format("{} ms", time.count());
}

std::string where(const Attempt& what) {
  return std::string("transport.") + what.op;
}

}  // namespace

VerdictWriter::VerdictWriter(int rank, int size, const PeerWatchOptions& options)
    : group_(options.group),
      rank_(rank),
      names_(options.world_ranks),
      myself_(fmt::format("rank {}/{}{}{} ({})",
                          rank,
                          size,
                          names_.suffix(rank),
                          group_.empty() ? "" : fmt::format(" group \"{}\"", group_),
                          options.transport)) {}

CommContext VerdictWriter::context_of(const Attempt& what, std::vector<int> peers) const {
  return {
      .op = what.op, .group = group_, .rank = rank_, .peers = std::move(peers), .seq = what.seq};
}

Verdict VerdictWriter::by_broken_link(const Attempt& what,
                                      Blame blame,
                                      const std::string& how) const {
  CommContext context = context_of(what, blame.peers);
  context.mismatch = blame.kind == Blame::Kind::kMismatch;
  const CommError error(
      where(what), cannot_complete(what, blame, fmt::format(" ({})", how)), context);
  return {std::make_exception_ptr(error), std::move(blame)};
}

Verdict VerdictWriter::by_blame(const Attempt& what, Blame blame) const {
  std::exception_ptr error =
      blame.error(where(what), cannot_complete(what, blame, ""), context_of(what, blame.peers));
  return {std::move(error), std::move(blame)};
}

Verdict VerdictWriter::by_own_fault(const Attempt& what, const std::string& reason) const {
  const std::string story = fmt::format("{}{} failed: {}", what.op, number(what.seq), reason);
  return {std::make_exception_ptr(own_error(what, story)),
          {{rank_}, fmt::format("{}'s {}", names_.one(rank_), story)}};
}

std::string VerdictWriter::cannot_complete(const Attempt& what,
                                           const Blame& blame,
                                           const std::string& how) const {
  return fmt::format("{}: {}; {}{} cannot complete{}. See {}.",
                     myself_,
                     blame.story,
                     what.op,
                     number(what.seq),
                     how,
                     catalogue_section("transport"));
}

Verdict VerdictWriter::by_mismatch(const Attempt& what, const std::string& reason) const {
  const std::string story = fmt::format("{}{}: {}", what.op, number(what.seq), reason);
  Blame blame{{}, fmt::format("{}'s {}", names_.one(rank_), story), Blame::Kind::kMismatch};
  std::exception_ptr error = blame.error(
      where(what),
      fmt::format("{}: {}. All ranks must call the same operations in the same order: does one of "
                  "them stand inside if (rank == 0)?",
                  myself_,
                  story),
      context_of(what));
  return {std::move(error), std::move(blame)};
}

Verdict VerdictWriter::by_timeout(const Attempt& what,
                                  const std::vector<int>& awaited,
                                  Absentees absent) const {
  const std::string after = fmt::format("{} timed out after {}", what.op, in_words(what.timeout));
  const std::string words = fmt::format("{}", fmt::join(absent.last_words, "; "));
  const std::string story =
      absent.ranks.empty()
          ? fmt::format(
                "{}{}: every rank has reached it, but the data of {} did not arrive; {}the network "
                "is stuck",
                after,
                number(what.seq),
                awaited.empty() ? "others" : names_.several(awaited),
                std::string_view(what.op).starts_with("all_to_all")
                    ? "it may send other sizes than are expected here, or "
                    : "")
          : fmt::format("{} waiting for {}{}{}{}",
                        after,
                        names_.several(absent.ranks),
                        number(what.seq),
                        words.empty() ? "" : "; " + words,
                        absent.cause.empty() ? "" : "; " + absent.cause);
  if (!absent.cause.empty()) {
    absent.ranks.clear();
  }
  Blame late{std::move(absent.ranks),
             fmt::format("{}'s {}", names_.one(rank_), story),
             Blame::Kind::kTimeout};
  std::exception_ptr error =
      late.error(where(what),
                 fmt::format("{}: {}. See {}.", myself_, story, catalogue_section("hang")),
                 context_of(what, late.peers));
  return {std::move(error), std::move(late)};
}

CommError VerdictWriter::own_error(const Attempt& what, const std::string& story) const {
  return {where(what), fmt::format("{}: {}", myself_, story), context_of(what)};
}

}  // namespace argosy::transport
