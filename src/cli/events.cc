// SPDX-License-Identifier: Apache-2.0
// `mete events`: past events from the daemon's log, and with -w new ones as they happen. One line
// each. Across restarts of the daemon no event is missed or repeated: their numbers have no gaps.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "base/text.h"
#include "cli/event_text.h"
#include "cli/verbs.h"
#include "runner/lasting_client.h"
#include "seam/clock.h"
#include "wire/event.h"

namespace mete::cli {

namespace {

constexpr std::array kEventsOptions{
    OptionSpec{"--watch", "", "continue with new events until Ctrl-C", "-w"},
    OptionSpec{"--from", "SEQ",
               "begin with event number SEQ (default: all kept events; with -w, the last ten)"},
    kOutputOption,
};
constexpr int kLast = 10;
constexpr int kTickMs = 1'000;

std::string target(const std::optional<std::uint64_t>& from, bool wait) {
  return "/v1/events?" +
         (from ? "from=" + std::to_string(*from) : "last=" + std::to_string(kLast)) +
         (wait ? "&wait=1" : "");
}

void print(const wire::EventsDocument& page, const Output& output) {
  std::string lines;
  for (const wire::EventDocument& event : page.events) {
    if (!lines.empty()) lines += '\n';
    lines += output.json() ? wire::encode(event) : event_text(event, page.at);
  }
  if (!lines.empty()) output.data(lines);
}

// nullopt: stdout is closed.
std::optional<Result<std::string>> ask(runner::LastingClient& daemon, const std::string& target) {
  daemon.begin(target);
  for (;;) {
    std::optional<Result<std::string>> answer = daemon.next(net::Milliseconds(0));
    if (answer) return answer;
    if (nobody_reads()) return std::nullopt;
    std::array ready{pollfd{daemon.descriptor(), POLLIN, 0}, pollfd{STDOUT_FILENO, 0, 0}};
    (void)poll(ready.data(), ready.size(), kTickMs);
  }
}

int run_events(const Parsed& parsed, const Output& output) {
  const bool watch = parsed.has("--watch");
  std::optional<std::uint64_t> from;
  if (!watch) from = 1;
  if (const std::string* text = parsed.find("--from"); text != nullptr) {
    const Result<std::uint64_t> number = base::parse_uint(*text);
    if (!number)
      return output.fail(Error::invalid("--from " + base::quote(*text) + " is no number")
                             .with_hint("write --from 81: the first column of mete events"));
    from = *number;
  }
  Result<runner::DaemonClient> client = runner::DaemonClient::open_for_jobs();
  if (!client) return output.fail(client.error(), exit_code_of_failure(client.error().code));
  runner::LastingClient daemon(*std::move(client), output.talk());
  for (;;) {
    const std::optional<Result<std::string>> body = ask(daemon, target(from, watch));
    if (!body) return kExitOk;
    const Result<wire::EventsDocument> page = *body ? wire::decode_events(**body) : body->error();
    if (!page) return output.fail(page.error());
    print(*page, output);
    if (output.failed()) return kExitOk;  // finish() changes it if that is a failure
    const bool more = !from || page->next > *from;
    from = page->next;
    if (!watch && !more) return kExitOk;
  }
}

}  // namespace

const Verb kEventsVerb{
    "events",
    "print events of jobs and cards",
    "mete events [-w] [--from SEQ] [-o json]",
    "mete events -w\n"
    "mete events --from 81 -o json | jq -r .type",
    "Prints one line for each event: number, time, type and job. With -o json each line is a "
    "document. Numbers have no gaps, so a program can store the last number and continue after it. "
    "Events of other users' jobs are left out. The daemon keeps the last 100,000 events.",
    kEventsOptions,
    Rest::kNothing,
    run_events,
};

}  // namespace mete::cli
