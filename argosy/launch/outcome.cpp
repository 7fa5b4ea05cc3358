#include "argosy/launch/outcome.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "argosy/base/catalogue.h"

namespace argosy::launch {
namespace {

/// Who loses a peer may fail before the launchers know that its node is lost: in microseconds.
constexpr int64_t kCascade = 500'000;

bool is_lost(const JobState& job, int node) {
  return std::ranges::count(job.lost_nodes(), node) > 0;
}

/// What ranks elsewhere say of a node that is gone is a consequence, unless a signal ended them.
bool is_cause(const RankEnd& first, const JobState& job) {
  return job.lost_nodes().empty() || is_lost(job, first.node) || died_by_signal(first) ||
         (job.lost_since_us() && first.at_us < *job.lost_since_us() - kCascade);
}

/// All have ended with the same words, which every launcher has shown of its ranks.
bool same_words(const RankEnd& first, const std::vector<RankEnd>& others, const JobState& job) {
  return !others.empty() && job.over() && job.lost_nodes().empty() && !job.something_left() &&
         !first.last_words.empty() && std::ranges::all_of(others, [&](const RankEnd& end) {
           return end.last_words == first.last_words;
         });
}

}  // namespace

std::vector<std::string> names_of(const std::vector<int>& nodes, const JobPlan& plan) {
  std::vector<std::string> texts;
  for (const int number : nodes) {
    const JobPlan::Node& node = plan.nodes.at(static_cast<size_t>(number));
    texts.push_back(fmt::format("node {} ({}, {})", number, node.host, node.address));
  }
  return texts;
}

Outcome outcome_of(const JobState& job, const JobPlan& plan, const LocalEnd& local) {
  const std::vector<RankEnd> others = job.others();
  const std::optional<RankEnd> first = job.first_failure();
  Outcome outcome{.exit_code = local.undying ? 1 : 0,
                  .signal = job.interrupted_by() ? job.interrupted_by() : local.signal,
                  .left_behind = local.left_behind,
                  .lost = names_of(job.lost_nodes(), plan),
                  .node_zero_lost = is_lost(job, 0)};
  outcome.words = render_lost(outcome.lost);
  if (!job.over()) {
    std::vector<int> silent = job.awaited();
    std::erase(silent, local.node);
    if (!silent.empty()) {
      outcome.words += fmt::format("[launch] {} did not say in time how its ranks ended\n",
                                   fmt::join(names_of(silent, plan), ", "));
    }
  }
  std::vector<RankEnd> all = others;
  if (first) {
    all.push_back(*first);
  }
  if (ask_to_resume(all) && job.lost_nodes().empty() && !local.undying) {
    outcome.exit_code = resumable_code(outcome.signal);
    outcome.words += render_resumable(outcome.exit_code);
  } else if (first && is_cause(*first, job)) {
    outcome.exit_code = first->exit.shell_code();
    if (job.decision() && job.decision()->wait_ms >= 0 && !local.undying) {
      outcome.restart_after = std::chrono::milliseconds(job.decision()->wait_ms);
    }
    outcome.failure = {.first = *first,
                       .others = others,
                       .same_words = same_words(*first, others, job),
                       .host = first->host.empty() ? local.host : first->host,
                       .what_now = job.decision() ? job.decision()->text
                                                  : fmt::format("exit code {}", outcome.exit_code)};
    outcome.words += render(*outcome.failure);
  } else if (!job.lost_nodes().empty() || (!job.over() && !outcome.signal)) {
    if (first) {
      outcome.words += fmt::format("[launch] around the same time, {}\n", describe(*first));
    }
    outcome.exit_code = 1;
    outcome.words += fmt::format("[launch] exit code 1. See {}\n", catalogue_section("node-lost"));
  } else if (outcome.signal) {
    outcome.exit_code = 128 + *outcome.signal;
    outcome.words += render_unexpected(*outcome.signal, others) + render_stopped(*outcome.signal);
  }
  return outcome;
}

}  // namespace argosy::launch
