// SPDX-License-Identifier: Apache-2.0
// `mete daemon status|stop|repair`: looks at the daemon, ends it and waits until it is gone, or
// saves what is whole of a damaged state. Never starts one.
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/json.h"
#include "cli/subword.h"
#include "cli/verbs.h"
#include "runner/daemon_client.h"
#include "wire/cards.h"

namespace mete::cli {

namespace {

constexpr int kExitNo = 1;
constexpr int kPatienceMs = 30'000;
constexpr std::array kDaemonOptions{
    kOutputOption,
    OptionSpec{"--state-dir", "FOLDER", "with repair: the state folder of the daemon"},
};

std::string not_running(std::optional<std::int32_t> ended) {
  JsonObject json;
  json.text("schema", "mete.daemon/1").text("at", timestamp()).raw("running", "false");
  if (ended) json.number("ended_pid", static_cast<std::uint64_t>(*ended));
  return json.str();
}

std::string jobs_text(const wire::DaemonView& view) {
  return std::to_string(view.running) + " running, " + std::to_string(view.pending) + " waiting";
}

std::string notify_text(const wire::DaemonView::Notify& notify) {
  std::string text =
      std::to_string(notify.sent) + " sent, " + std::to_string(notify.waiting) + " waiting";
  if (notify.failed != 0) text += ", " + std::to_string(notify.failed) + " given up";
  if (notify.dropped != 0) text += ", " + std::to_string(notify.dropped) + " dropped: too many";
  return text;
}

std::string describe(const wire::DaemonView& view) {
  std::string text = "meted " + view.version + " runs as pid " + std::to_string(view.pid) + " (" +
                     view.mode + " mode) for " +
                     base::duration_in_words(static_cast<std::int64_t>(view.uptime_s));
  text += "\n  socket  " + view.socket;
  text += "\n  state   " + view.state_dir;
  if (!view.simulated.empty()) text += "\n  cards   simulated: " + base::printable(view.simulated);
  text += "\n  jobs    " + jobs_text(view);
  text += "\n  policy  " + view.policy;
  text += "\n  escapes " + std::string(view.escapes == "stop" ? "end their job" : "are reported");
  text += "\n  notify  " + notify_text(view.notify);
  if (view.idle_end_s)
    text += "\n  idle    ends by itself after " +
            base::duration_in_words(static_cast<std::int64_t>(*view.idle_end_s)) + " without work";
  if (!view.metrics.empty()) text += "\n  metrics http://" + view.metrics + "/metrics";
  if (!view.metrics_trouble.empty()) text += "\n  trouble no metrics: " + view.metrics_trouble;
  if (!view.trouble.empty()) text += "\n  trouble " + view.trouble;
  if (view.disk_full) text += "\n  trouble the disk of its state is full: nothing new is accepted";
  return text;
}

int status(runner::DaemonClient& client, const Output& output) {
  const Result<std::string> document = client.call("GET", "/v1/daemon");
  if (!document) return output.fail(document.error());
  const Result<wire::DaemonView> view = wire::decode_daemon(*document);
  if (!view) return output.fail(view.error());
  output.data(output.json() ? *document : describe(*view));
  return kExitOk;
}

// A handle on the process at the other end, so that its end can be waited for.
Fd process_of(runner::DaemonClient& client) {
  const pid_t pid = client.http().peer().pid;
  // By number: glibc 2.36 declares pidfd_open() as a C++ function. A daemon of another pid
  // namespace has no number here.
  return Fd(pid > 0 ? static_cast<int>(syscall(SYS_pidfd_open, pid, 0)) : -1);
}

// True once the process has ended, or, without a handle on it, once it has hung up.
bool wait_until_gone(const Fd& process, runner::DaemonClient& client) {
  const bool known = process.valid();
  const net::Deadline deadline = net::Deadline::in(net::Milliseconds(kPatienceMs));
  const Result<net::Waited> waited =
      net::wait_for(known ? process.get() : client.http().descriptor(), POLLIN, -1, deadline);
  return waited && *waited == net::Waited::kReady;
}

int stop(runner::DaemonClient& client, const Output& output) {
  const Fd process = process_of(client);
  const Result<std::string> document = client.call("POST", "/v1/daemon/stop");
  if (!document) return output.fail(document.error());
  const Result<wire::DaemonView> view = wire::decode_daemon(*document);
  if (!view) return output.fail(view.error());
  if (!wait_until_gone(process, client)) {
    return output.fail(Error::io("the daemon does not end")
                           .with_evidence("pid " + std::to_string(view->pid) + " was asked to " +
                                          std::to_string(kPatienceMs / 1000) + " s ago")
                           .with_hint("kill " + std::to_string(view->pid) +
                                      "; its jobs and its log survive that"));
  }
  if (output.json()) {
    output.data(not_running(view->pid));
    return kExitOk;
  }
  output.say("the daemon (pid " + std::to_string(view->pid) + ") has ended");
  if (view->running != 0)
    output.say("its jobs run on (" + jobs_text(*view) + "); the next daemon finds them");
  if (view->pending != 0) output.say("a `mete run` that waits starts a new one");
  return kExitOk;
}

void say_if_system_is_down(const Output& output) {
  const Result<runner::DaemonPlace> place = runner::daemon_place();
  if (place && net::system_is_down(place->places))
    output.say("the daemon of this machine does not answer: systemctl start meted");
}

int nobody(const std::string& word, const Output& output) {
  if (output.json())
    output.data(not_running({}));
  else if (word == "status")
    output.data("no daemon runs");
  else
    output.say("no daemon runs");
  say_if_system_is_down(output);
  return word == "status" ? kExitNo : kExitOk;
}

// The daemon's own program does it: nothing else needs to know how its state is kept.
int repair(const std::string* said, const Output& output) {
  const Result<runner::DaemonPlace> place = runner::daemon_place();
  if (!place) return output.fail(place.error());
  const std::string& asked = said == nullptr ? place->state_dir : *said;
  const std::string folder = base::real_path(asked);
  if (folder.empty())
    return output.fail(Error::not_found("there is no state in " + base::quote(asked)));
  if (Result<runner::DaemonClient> client =
          runner::DaemonClient::open(runner::DaemonClient::Start::kNever)) {
    const Result<std::string> document = client->call("GET", "/v1/daemon");
    const Result<wire::DaemonView> view =
        document ? wire::decode_daemon(*document) : Result<wire::DaemonView>(document.error());
    if (view && base::real_path(view->state_dir) == folder)
      return output.fail(
          Error::busy("the daemon runs, and its state is not damaged")
              .with_evidence("pid " + std::to_string(view->pid))
              .with_hint("mete daemon stop, if it should be looked at all the same"));
  }
  const std::string program = net::program_beside_us("meted");
  if (program.empty())
    return output.fail(Error::not_found("meted is missing").with_hint("install all of mete"));
  std::vector<std::string> words = {program, "--repair", "--state-dir", folder};
  if (output.json()) words.emplace_back("--json");
  std::vector<char*> arguments;
  for (std::string& each : words) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  (void)execv(program.c_str(), arguments.data());
  return output.fail(Error::from_errno("run " + program, errno));
}

int run_daemon(const Parsed& parsed, const Output& output) {
  const Result<std::string> word = sub_word("daemon", parsed.rest, {"status", "stop", "repair"});
  if (!word) return output.fail(word.error());
  if (const Result<void> r = no_more_than(1, parsed.rest); !r) return output.fail(r.error());
  if (*word == "repair") return repair(parsed.find("--state-dir"), output);
  if (parsed.has("--state-dir"))
    return output.fail(Error::invalid("--state-dir is for mete daemon repair"));
  Result<runner::DaemonClient> client =
      runner::DaemonClient::open(runner::DaemonClient::Start::kNever);
  if (!client && runner::nobody_listens(client.error())) return nobody(*word, output);
  if (!client) return output.fail(client.error());
  return *word == "status" ? status(*client, output) : stop(*client, output);
}

}  // namespace

const Verb kDaemonVerb{
    "daemon",
    "show the status of the daemon, stop it, or repair its state",
    "mete daemon status|stop|repair [--state-dir FOLDER] [-o json]",
    "mete daemon status\n"
    "mete daemon stop            # running jobs continue\n"
    "mete daemon repair          # save what is intact, and keep a copy",
    "A private daemon starts with the first command that needs it and ends when it has been idle. "
    "status: exit code 0 if a daemon runs, 1 if none does. stop waits until the daemon has ended, "
    "and succeeds if none runs; the next command starts a new daemon. repair is for a daemon that "
    "reports damaged state; it prints what is lost, and changes nothing if nothing is damaged.",
    kDaemonOptions,
    Rest::kWords,
    run_daemon,
    {"status", "stop", "repair"},
};

}  // namespace mete::cli
