#include "argosy/launch/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <iterator>

#include "argosy/base/catalogue.h"
#include "argosy/base/exit_codes.h"
#include "argosy/base/strings.h"
#include "argosy/base/text.h"
#include "argosy/launch/cause.h"
#include "argosy/launch/line_buffer.h"
#include "argosy/os/signals.h"

namespace argosy::launch {
namespace {

/// "code 3", "SIGSEGV"
std::string shortly(const os::Exit& exit) {
  return exit.signal != 0 ? os::signal_name(exit.signal) : fmt::format("code {}", exit.code);
}

std::string describe_others(const FailureReport& report) {
  std::string after;
  std::vector<int> well;
  std::vector<int> stopped;
  for (const RankEnd& end : report.others) {
    if (end.exit.ok()) {
      well.push_back(end.rank);
    } else if (end.asked_to_stop) {
      stopped.push_back(end.rank);
    } else {
      after += fmt::format("{}rank {} {} ({:+.1f} ms)",
                           after.empty() ? "" : ", ",
                           end.rank,
                           shortly(end.exit),
                           static_cast<double>(end.at_us - report.first.at_us) / 1000);
    }
  }
  std::string text;
  const auto name = [&](const char* what, std::vector<int>& ranks) {
    if (!ranks.empty()) {
      std::ranges::sort(ranks);
      text += fmt::format("{}{}: rank{} {}",
                          text.empty() ? "" : "; ",
                          what,
                          ranks.size() > 1 ? "s" : "",
                          strings::ranges(ranks));
    }
  };
  if (!after.empty()) {
    text = "failed after it: " + after;
  }
  name("stopped by the launcher", stopped);
  name("ended well", well);
  return text;
}

/// What the rank said of its end, unless that has just been read among its last lines, which a
/// stack may have pushed out.
std::string describe_error(const FailureReport& report) {
  if (!report.first.error || !report.first.threw.empty()) {
    return "";
  }
  constexpr size_t kWidth = 500;
  const std::string& message = report.first.error->message;
  std::string line = message.substr(0, std::min(message.find('\n'), kWidth));
  // Not every program's last words have the type of the exception before them.
  const size_t colon = line.find(": ");
  const std::string text = colon == std::string::npos ? line : line.substr(colon + 2);
  const bool read = std::ranges::any_of(report.first.last_lines, [&](const std::string& last) {
    return last.find(text) != std::string::npos;
  });
  line += line.size() < message.size() ? " …" : "";
  return read ? ""
              : fmt::format("[launch] it reported {} (in {})\n", line, report.first.error->path);
}

/// For the middle of a sentence.
std::string_view without_stop(std::string_view sentence) {
  return sentence.ends_with('.') ? sentence.substr(0, sentence.size() - 1) : sentence;
}

}  // namespace

std::string describe(const RankEnd& end) {
  const std::string how =
      !end.stopped.empty() ? fmt::format("was {}, did not answer for {} and was ended by {}",
                                         end.stopped,
                                         end.hung,
                                         shortly(end.exit))
      : !end.hung.empty()
          ? fmt::format("stood still for {} and was ended by {}", end.hung, shortly(end.exit))
      : !end.threw.empty()
          ? fmt::format("threw {}, and was ended by {}", without_stop(end.threw), shortly(end.exit))
      : end.exit.signal == SIGKILL && end.out_of_memory
          ? fmt::format("was killed by SIGKILL ({})",
                        *end.out_of_memory
                            ? "the out-of-memory killer was at work on this machine meanwhile"
                            : "not the out-of-memory killer, by the kernel's count")
      : end.exit.signal != 0
          ? "was killed by " + os::describe_signal(end.exit.signal)
          : fmt::format("exited with code {}{}", end.exit.code, describe_code(end.exit.code));
  return fmt::format("rank {} {}(pid {}) {} after {}",
                     end.rank,
                     end.host.empty() ? "" : "on " + end.host + " ",
                     end.pid,
                     how,
                     text::duration(end.ran));
}

std::string time_text(int64_t at_us) {
  constexpr int64_t kSecond = 1'000'000;
  const auto seconds = static_cast<std::time_t>(at_us / kSecond);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:06}", local, at_us % kSecond);
}

std::string_view without_time(std::string_view line) {
  constexpr std::string_view kForm = "00:00:00.000 ";  // 0: any digit
  const bool timed = line.size() >= kForm.size() &&
                     std::ranges::equal(line.substr(0, kForm.size()), kForm, [](char a, char form) {
                       return form == '0' ? a >= '0' && a <= '9' : a == form;
                     });
  return timed ? line.substr(kForm.size()) : line;
}

bool all_failed_by_themselves(const FailureReport& report) {
  constexpr int kBySignal = 128;  // how a shell's trap or a handler ends after a signal
  const auto by_itself = [&](const RankEnd& end) {
    const bool as_first = end.exit.code == report.first.exit.code && end.exit.code < kBySignal;
    return end.exit.signal == 0 && end.exit.code != 0 && (!end.asked_to_stop || as_first);
  };
  return by_itself(report.first) && std::ranges::all_of(report.others, by_itself);
}

std::string render(const FailureReport& report) {
  const bool said_above = report.same_words && all_failed_by_themselves(report);
  std::string text = fmt::format("[launch] {}", describe(report.first));
  if (said_above) {
    text += fmt::format("; all {} ranks ended with the same words, which stand above.\n",
                        report.others.size() + 1);
  } else if (report.first.last_lines.empty()) {
    text += "; it wrote nothing.\n";
  } else {
    text += "; its last lines:\n";
    for (const std::string& line : report.first.last_lines) {
      text += fmt::format("  | {}\n", after_last_redraw(line));
    }
  }
  text += describe_error(report);
  if (!report.first.log_path.empty()) {
    text += fmt::format("[launch] its whole output is in {}\n", report.first.log_path);
  }
  if (report.first.at_us != 0) {
    text += fmt::format("[launch] this happened at {}{}{}\n",
                        time_text(report.first.at_us),
                        report.host.empty() ? "" : " on " + report.host,
                        report.first.program.empty() ? "" : ": " + report.first.program);
  }
  const std::string others = said_above ? "" : describe_others(report);
  if (!others.empty()) {
    text += fmt::format("[launch] {}\n", others);
  }
  const std::string advice = advice_for(report.first);
  if (!advice.empty() && report.first.hung.empty()) {
    text += fmt::format("[launch] what may help: {}\n", advice);
  }
  text += fmt::format("[launch] {}. See {}\n", report.what_now, catalogue_section("rank-failed"));
  return text;
}

std::string render_lost(const std::vector<std::string>& nodes) {
  std::string text;
  for (const std::string& node : nodes) {
    text += fmt::format(
        "[launch] lost {}: its launcher was killed, or its machine or network does not answer\n",
        node);
  }
  return text;
}

std::string render_unexpected(int signal, const std::vector<RankEnd>& ends) {
  std::vector<RankEnd> unexpected;
  std::ranges::copy_if(ends, std::back_inserter(unexpected), [&](const RankEnd& end) {
    const int code = end.exit.shell_code();
    return code != 0 && code != 128 + signal && code != 128 + SIGKILL;
  });
  std::ranges::sort(unexpected, {}, &RankEnd::rank);
  std::string names;
  for (const RankEnd& end : unexpected) {
    names += fmt::format("{}rank {} {}", names.empty() ? "" : ", ", end.rank, shortly(end.exit));
  }
  return names.empty()
             ? ""
             : fmt::format(
                   "[launch] these ranks did not end by {}: {}\n", os::signal_name(signal), names);
}

int resumable_code(std::optional<int> stopped_by) {
  return stopped_by == SIGINT ? 128 + SIGINT : kResumeExitCode;
}

std::string render_resumable(int exit_code) {
  return fmt::format(
      "[launch] the ranks saved their state; to resume, run the same command again (argosy train: "
      "with --resume auto); exit code {}\n",
      exit_code);
}

std::string render_stopped(int signal) {
  return fmt::format(
      "[launch] stopped by {}; exit code {}\n", os::signal_name(signal), 128 + signal);
}

}  // namespace argosy::launch
