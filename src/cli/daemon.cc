// SPDX-License-Identifier: Apache-2.0
// `mete daemon status|start|stop|restart`: shows the daemon, starts a private one, or ends it and
// waits until it has ended. Running jobs continue while no daemon runs. The daemon of the machine
// belongs to the service manager: it is never started or restarted here. daemon_state.cc has the
// verbs about the configuration and the state.
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "base/text.h"
#include "base/time.h"
#include "cli/daemon_state.h"
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
    OptionSpec{"--state-dir", "FOLDER",
               "with backup, restore, repair: the state folder of the daemon"},
    OptionSpec{"--force", "", "with restore: replace a state that has jobs; it is kept aside"},
    OptionSpec{"--dry-run", "", "with restore: check the file and print what would be restored"},
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
  if (!view.config_trouble.empty())
    text +=
        "\n  trouble the configuration was not reloaded: " + base::printable(view.config_trouble);
  if (!view.needs_restart.empty())
    text += "\n  restart needed for " + base::join(view.needs_restart, ", ");
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

// Ends the daemon. Returns how it was before.
Result<wire::DaemonView> end_daemon(runner::DaemonClient& client) {
  const Fd process = process_of(client);
  const Result<std::string> document = client.call("POST", "/v1/daemon/stop");
  if (!document) return document.error();
  Result<wire::DaemonView> view = wire::decode_daemon(*document);
  if (!view || wait_until_gone(process, client)) return view;
  return Error::io("the daemon does not end")
      .with_evidence("pid " + std::to_string(view->pid) + " was asked to " +
                     std::to_string(kPatienceMs / 1000) + " s ago")
      .with_hint("kill " + std::to_string(view->pid) + "; its jobs and its log survive that");
}

int stop(runner::DaemonClient& client, const Output& output) {
  const Result<wire::DaemonView> view = end_daemon(client);
  if (!view) return output.fail(view.error());
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

Error of_systemd(std::string_view word) {
  return Error::unsupported("the daemon of this machine is managed by systemd")
      .with_hint("sudo systemctl " + std::string(word) + " meted");
}

// `verb`: "has started", "runs already".
int say_running(runner::DaemonClient& client, std::string_view verb, const Output& output) {
  const Result<std::string> document = client.call("GET", "/v1/daemon");
  const Result<wire::DaemonView> view =
      document ? wire::decode_daemon(*document) : document.error();
  if (!view) return output.fail(view.error());
  if (output.json()) {
    output.data(*document);
    return kExitOk;
  }
  output.say("the daemon (pid " + std::to_string(view->pid) + ", " + view->mode + " mode) " +
             std::string(verb) + "; it listens at " + base::printable(view->socket));
  if (view->idle_end_s)
    output.say("it ends by itself after " +
               base::duration_in_words(static_cast<std::int64_t>(*view->idle_end_s)) +
               " without work");
  return kExitOk;
}

int start(std::string_view word, const Output& output) {
  const Result<runner::DaemonPlace> place = runner::daemon_place();
  if (!place) return output.fail(place.error());
  if (net::system_is_down(place->places)) return output.fail(of_systemd(word));
  Result<runner::DaemonClient> client =
      runner::DaemonClient::open(runner::DaemonClient::Start::kIfNeeded);
  if (!client) return output.fail(client.error());
  return say_running(*client, word == "restart" ? "has started again" : "has started", output);
}

int restart(runner::DaemonClient& client, const Output& output) {
  const Result<std::string> document = client.call("GET", "/v1/daemon");
  const Result<wire::DaemonView> view =
      document ? wire::decode_daemon(*document) : document.error();
  if (!view) return output.fail(view.error());
  if (view->mode == "system") return output.fail(of_systemd("restart"));
  if (const Result<wire::DaemonView> ended = end_daemon(client); !ended)
    return output.fail(ended.error());
  return start("restart", output);
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

// The file of backup and restore, and their options.
int copy_state(const std::string& word, const Parsed& parsed, const Output& output) {
  if (const Result<void> r = no_more_than(2, parsed.rest); !r) return output.fail(r.error());
  if (parsed.rest.size() < 2)
    return output.fail(Error::invalid("mete daemon " + word + " needs a file")
                           .with_hint("mete daemon " + word + " mete-backup.db"));
  const StateFile what{parsed.rest[1], parsed.find("--state-dir"), parsed.has("--force"),
                       parsed.has("--dry-run")};
  return word == "backup" ? backup_daemon(what, output) : restore_daemon(what, output);
}

int run_daemon(const Parsed& parsed, const Output& output) {
  const Result<std::string> word = sub_word("daemon", parsed.rest, kDaemonVerb.words);
  if (!word) return output.fail(word.error());
  if (*word != "restore" && (parsed.has("--force") || parsed.has("--dry-run")))
    return output.fail(Error::invalid("--force and --dry-run are for mete daemon restore"));
  if (*word == "backup" || *word == "restore") return copy_state(*word, parsed, output);
  if (const Result<void> r = no_more_than(1, parsed.rest); !r) return output.fail(r.error());
  if (*word == "repair") return repair_daemon(parsed.find("--state-dir"), output);
  if (parsed.has("--state-dir"))
    return output.fail(Error::invalid("--state-dir is for mete daemon backup, restore and repair"));
  Result<runner::DaemonClient> client =
      runner::DaemonClient::open(runner::DaemonClient::Start::kNever);
  const bool starts = *word == "start" || *word == "restart";
  if (!client && runner::nobody_listens(client.error()))
    return starts ? start(*word, output) : nobody(*word, output);
  if (!client) return output.fail(client.error());
  if (*word == "start") return say_running(*client, "runs already", output);
  if (*word == "restart") return restart(*client, output);
  if (*word == "reload") return reload_daemon(*client, output);
  return *word == "status" ? status(*client, output) : stop(*client, output);
}

}  // namespace

const Verb kDaemonVerb{
    "daemon",
    "show, start, stop or reload the daemon; copy or repair its state",
    "mete daemon status|start|stop|restart|reload [-o json]\n"
    "mete daemon backup FILE|restore FILE|repair [options]",
    "mete daemon status\n"
    "mete daemon restart                # running jobs continue\n"
    "mete daemon stop                   # running jobs continue\n"
    "mete daemon reload                 # read the configuration again\n"
    "mete daemon backup mete.db         # copy the state while the daemon runs\n"
    "mete daemon restore mete.db        # while no daemon runs\n"
    "mete daemon repair                 # save what is intact, and keep a copy",
    "A private daemon starts with the first command that needs it and ends when it has been idle. "
    "status: exit code 0 if a daemon runs, 1 if none does. start starts a private daemon if no "
    "daemon runs, and says where it listens. stop waits until the daemon has ended, and succeeds "
    "if none runs; the next command starts a new daemon. restart is stop, then start. The daemon "
    "of the machine is started and restarted by systemctl. reload prints the keys that changed, "
    "and the keys that need a restart; if the file has an error, nothing changes. backup copies "
    "jobs, queue and history into one file, without logs; restore puts it back. repair is for a "
    "daemon that reports damaged state; it prints what is lost, and changes nothing if nothing is "
    "damaged.",
    kDaemonOptions,
    Rest::kWords,
    run_daemon,
    {"status", "start", "stop", "restart", "reload", "backup", "restore", "repair"},
};

}  // namespace mete::cli
