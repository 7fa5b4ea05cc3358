#include "argosy/launch/session.h"

#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <chrono>
#include <optional>

#include "argosy/base/error.h"
#include "argosy/launch/process_setup.h"

namespace argosy::launch {

void Session::tell_of_closed_output(std::string_view consequence) {
  if (output.out().broken() && !output.shared() && !told_of_closed_output) {
    told_of_closed_output = true;
    const int error = output.out().error();
    say(fmt::format("[launch] standard output {}{}\n",
                    error == 0 || error == EPIPE ? "was closed by its reader"
                                                 : "ends here: " + errno_message(error),
                    consequence));
  }
}

bool Session::logs_are_whole() const {
  const bool together = combined && !combined->cut();
  const bool apart = job.logs.each_rank_whole() && !logs_cut;
  return together || apart;
}

int Session::hand_over_output(const Outcome& outcome) {
  const int code = outcome.exit_code;
  const bool interrupted = outcome.signal || stopped_by;
  output.hand_over(interrupted ? kPatienceOnceStopped : options.reader_patience, signals.fd(), [&] {
    stopped_by = stopped_by ? stopped_by : next_stop_signal(signals);
    return stopped_by.has_value();
  });
  // Nobody can be told of the loss of standard error but by the exit code.
  if (output.cut() || (errors_shown && output.err_cut())) {
    tell_of_closed_output(logs_are_whole() ? "; the logs have all of it" : "");
    output.flush();
    if (code == 0 && !logs_are_whole()) {
      return 1;  // what the ranks printed is lost
    }
  }
  return code == 0 && stopped_by ? 128 + *stopped_by : code;
}

}  // namespace argosy::launch
