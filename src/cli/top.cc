// SPDX-License-Identifier: Apache-2.0
// `mete top`: cards, jobs and the queue on a live screen. src/top decides what is drawn where; this
// file fetches the snapshots, draws them, and does what keys ask for. If stdout is no terminal, the
// screen is printed once; on a terminal without cursor control it is printed as sentences.
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/process.h"
#include "base/text.h"
#include "cli/table.h"
#include "cli/top_signals.h"
#include "cli/top_source.h"
#include "cli/top_tree.h"
#include "cli/verbs.h"
#include "cli/wait_signals.h"
#include "cli/watch.h"
#include "top/act.h"
#include "top/paint.h"
#include "top/plain.h"
#include "top/terminal.h"

namespace mete::cli {

namespace {

constexpr std::array kTopOptions{
    OptionSpec{"--once", "", "print the screen once, with all rows"},
    OptionSpec{"--every", "SECONDS", "refresh interval (default: 1)"},
    OptionSpec{"--readonly", "", "ignore keys that would change anything but the screen"},
    OptionSpec{"--no-unicode", "", "use ASCII only"},
    OptionSpec{"--plain", "", "print sentences, then only changes; for screen readers"},
    kOutputOption,
};
constexpr unsigned kDefaultMs = 1'000;
constexpr int kEscapeMs = 50;  // an escape alone for this long is the key
constexpr std::size_t kPipeWidth = 120;
constexpr net::Milliseconds kFirstWait{10'000};
constexpr net::Milliseconds kDeedWait{5'000};

struct Wishes {
  bool once = false;
  bool plain = false;
  unsigned every_ms = kDefaultMs;
  top::Setting setting;
  top::Depth depth = top::Depth::kNone;
};

Result<Wishes> parse_wishes(const Parsed& parsed, const Output& output) {
  const top::TerminalKind kind = top::terminal_kind();
  Wishes wishes;
  wishes.plain = parsed.has("--plain") || (kind.terminal && kind.dumb && !parsed.has("--once"));
  wishes.once = parsed.has("--once") || (!kind.terminal && !parsed.has("--plain"));
  wishes.depth = kind.depth;
  wishes.setting.unicode = kind.unicode && !parsed.has("--no-unicode");
  wishes.setting.readonly = parsed.has("--readonly");
  wishes.setting.once = wishes.once;
  wishes.setting.host = base::short_host_name();
  if (const std::string* every = parsed.find("--every"); every != nullptr) {
    const Result<unsigned> period = parse_period_ms("--every", *every);
    if (!period) return period.error();
    wishes.every_ms = *period;
  }
  if (output.json() && !parsed.has("--once"))
    return Error::invalid("-o json goes with --once").with_hint("mete top --once -o json");
  return wishes;
}

// ---- once ----

int print_once(TopSource& source, const Wishes& wishes, const Output& output) {
  if (output.json()) {
    const Result<std::string> document = source.document();
    if (!document) return output.fail(document.error());
    output.data(*document);
    return kExitOk;
  }
  const top::Scene scene{*source.snapshot(), wishes.setting};
  if (wishes.plain) {
    top::Announcer announcer;
    output.data(base::join(announcer.next(scene), "\n"));
    return kExitOk;
  }
  const top::View view;
  const top::Size size{stdout_width().value_or(kPipeWidth), top::rows_enough(scene, view)};
  std::string text = top::paint_lines(top::frame(scene, view, size), wishes.depth);
  text.erase(text.find_last_not_of('\n') + 1);
  output.data(std::move(text));
  return kExitOk;
}

// ---- in sentences ----

// Runs until a signal arrives or the output is closed. Returns the signal; an error ends it too.
Result<int> announce(TopSource& source, Wishes& wishes, const Output& output) {
  WaitSignals signals;
  top::Announcer announcer;
  for (;;) {
    source.tend();
    wishes.setting.trouble = source.trouble();
    for (const std::string& line : announcer.next({*source.snapshot(), wishes.setting}))
      output.data(line);
    if (output.failed()) return 0;
    pollfd watched[] = {
        {signals.descriptor(), POLLIN, 0}, {STDOUT_FILENO, 0, 0}, {source.descriptor(), POLLIN, 0}};
    if (poll(watched, 3, static_cast<int>(source.until_due().count())) <= 0) continue;
    if (const int signal = signals.take(); signal != 0) return signal;
    if ((watched[1].revents & (POLLERR | POLLHUP)) != 0) return 0;
    if (watched[2].revents != 0) (void)source.hear();
    if (source.refusal()) return *source.refusal();
  }
}

// ---- on a screen ----

class Session {
 public:
  Session(TopSource& source, Wishes& wishes, top::Terminal& terminal)
      : source_(source), wishes_(wishes), terminal_(terminal) {}

  // The signal that ended it; 0: the user quit, or the terminal has closed.
  Result<int> run();

 private:
  bool draw();
  bool take_keys(const std::vector<top::Key>& keys);
  bool read_keys();
  std::optional<int> take_signals();
  void stop();
  void aim_at();
  void perform(const top::Deed& deed);
  std::string change(const top::Deed& deed);
  bool wait_for(int descriptor);
  void show_log(const std::string& job);
  int next_wait() const;

  TopSource& source_;
  Wishes& wishes_;
  top::Terminal& terminal_;
  WaitSignals signals_{SIGTSTP, SIGWINCH, SIGCONT};
  top::View view_;
  top::KeyReader keys_;
  std::optional<top::Canvas> drawn_;
};

// False: the terminal has closed.
bool Session::draw() {
  wishes_.setting.trouble = source_.trouble();
  const top::Scene scene{*source_.snapshot(), wishes_.setting};
  top::Canvas canvas = top::frame(scene, view_, terminal_.size());
  const std::string bytes = top::paint(drawn_, canvas, wishes_.depth);
  drawn_ = std::move(canvas);
  return bytes.empty() || terminal_.write(bytes).ok();
}

// Asks the daemon to cancel, hold or release a job. Returns what to say about it.
std::string Session::change(const top::Deed& deed) {
  Result<runner::DaemonClient> client =
      runner::DaemonClient::open_again({source_.socket()}, runner::DaemonClient::Start::kNever);
  if (!client) return client.error().message;
  const bool cancel = deed.kind == top::Deed::Kind::kCancel;
  const bool hold = deed.kind == top::Deed::Kind::kHold;
  const std::string target = "/v1/jobs/" + deed.job + (cancel ? "" : hold ? "/hold" : "/release");
  const Result<std::string> done =
      client->call(cancel ? "DELETE" : "POST", target, {}, {kDeedWait, -1});
  if (!done) return done.error().message;
  return "job " + deed.job +
         (cancel ? " is cancelled"
          : hold ? " is held; R releases it"
                 : " is released");
}

// Runs `mete logs -f` with our terminal. Ctrl-Z is blocked for it: no shell
// would continue it.
Result<pid_t> spawn_logs(const std::string& job) {
  posix_spawnattr_t how{};
  posix_spawnattr_init(&how);
  sigset_t blocked{};
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTSTP);
  sigset_t as_usual{};
  sigemptyset(&as_usual);
  sigaddset(&as_usual, SIGPIPE);
  posix_spawnattr_setsigmask(&how, &blocked);
  posix_spawnattr_setsigdefault(&how, &as_usual);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> words{"mete", "logs", "--follow", "--tail", "200", job};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawn(&child, "/proc/self/exe", nullptr, &how, arguments.data(), environ);
  posix_spawnattr_destroy(&how);
  if (error != 0) return Error::from_errno("run mete logs", error);
  return child;
}

// Waits until the descriptor is readable. Ctrl-C ends the wait too; a signal that ends us is left
// for the screen's own loop. True: the descriptor is readable.
bool Session::wait_for(int descriptor) {
  for (;;) {
    pollfd ready[] = {{descriptor, POLLIN, 0}, {signals_.descriptor(), POLLIN, 0}};
    if (poll(ready, 2, -1) < 0 && errno != EINTR) return false;
    // Signals first: Ctrl-C ends `mete logs` too, and must not be found by the screen's loop.
    const int signal = signals_.take();
    if (signal != 0 && signal != SIGWINCH && signal != SIGCONT && signal != SIGTSTP) {
      if (signal != SIGINT) (void)raise(signal);  // blocked: it arrives again at the descriptor
      return false;
    }
    if (signal == 0 && ready[0].revents != 0) return true;
  }
}

// The terminal belongs to `mete logs -f` until the log ends or Ctrl-C is pressed.
void Session::show_log(const std::string& job) {
  terminal_.leave();
  (void)terminal_.write("log of job " + job + " (Ctrl-C comes back to mete top)\n");
  const Result<pid_t> child = spawn_logs(job);
  if (child) {
    const Fd process(static_cast<int>(syscall(SYS_pidfd_open, *child, 0)));
    const bool ended = process.valid() && wait_for(process.get());
    if (!ended) (void)kill(*child, SIGINT);
    int status = 0;
    while (waitpid(*child, &status, 0) < 0 && errno == EINTR) {
    }
    if (ended && !(WIFSIGNALED(status) || WEXITSTATUS(status) == 128 + SIGINT)) {
      (void)terminal_.write("-- end of the log; Enter comes back to mete top --\n");
      if (wait_for(terminal_.descriptor())) (void)terminal_.read();
    }
  } else {
    view_.message = child.error().message;
  }
  (void)terminal_.enter();
  drawn_.reset();
}

void Session::perform(const top::Deed& deed) {
  if (deed.kind == top::Deed::Kind::kLogs) return show_log(deed.job);
  if (deed.kind != top::Deed::Kind::kSignal) {
    view_.message = change(deed);
    return;
  }
  const Result<std::size_t> sent = send_signals(deed);
  if (!sent)
    view_.message = sent.error().message;
  else
    view_.message = *sent == 0   ? "it has ended meanwhile"
                    : *sent == 1 ? "sent to one process"
                                 : "sent to " + std::to_string(*sent) + " processes";
}

// Reports what cannot be done, instead of asking for confirmation.
void Session::aim_at() {
  if (!view_.asked || view_.asked->kind != top::Deed::Kind::kSignal) return;
  const Result<void> aimed = aim(*view_.asked);
  if (aimed) return;
  view_.asked.reset();
  view_.message = aimed.error().message;
}

// False: quit.
bool Session::take_keys(const std::vector<top::Key>& keys) {
  for (const top::Key& key : keys) {
    const bool asked = view_.asked.has_value();
    const top::Scene scene{*source_.snapshot(), wishes_.setting};
    const bool tree = view_.wanted.tree;
    const top::Outcome outcome = top::act(view_, key, scene, terminal_.size());
    if (view_.wanted.tree && !tree) add_families(source_.last());
    if (outcome.quit) return false;
    if (outcome.redraw) drawn_.reset();
    if (outcome.deed) perform(*outcome.deed);
    if (!asked) aim_at();
  }
  return true;
}

bool Session::read_keys() {
  const Result<std::string> bytes = terminal_.read();
  return bytes && take_keys(keys_.read(*bytes));
}

// Ctrl-Z: restores the terminal for the shell, and draws again when the shell continues mete.
void Session::stop() {
  terminal_.leave();
  (void)raise(SIGSTOP);
  (void)terminal_.enter();
  drawn_.reset();
}

std::optional<int> Session::take_signals() {
  while (const int signal = signals_.take()) {
    if (signal == SIGTSTP) stop();
    if (signal == SIGWINCH || signal == SIGCONT) drawn_.reset();
    if (signal == SIGINT) return 0;
    if (signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT) return signal;
  }
  return std::nullopt;
}

int Session::next_wait() const {
  const int wait = static_cast<int>(source_.until_due().count());
  return keys_.waits() ? std::min(wait, kEscapeMs) : wait;
}

Result<int> Session::run() {
  if (Result<void> entered = terminal_.enter(); !entered) return std::move(entered).error();
  for (bool changed = true;;) {
    if (changed && !draw()) return 0;
    source_.tend();
    pollfd watched[] = {{terminal_.descriptor(), POLLIN, 0},
                        {signals_.descriptor(), POLLIN, 0},
                        {source_.descriptor(), POLLIN, 0}};
    const int ready = poll(watched, 3, next_wait());
    if (ready < 0 && errno != EINTR) return Error::from_errno("wait for keys", errno);
    changed = ready == 0 && !source_.trouble().empty();
    if (ready <= 0) {
      if (keys_.waits() && (changed = true, !take_keys(keys_.pause()))) return 0;
      continue;
    }
    if (watched[1].revents != 0) {
      if (const std::optional<int> ended = take_signals(); ended) return *ended;
      changed = true;
    }
    if ((watched[0].revents & POLLIN) != 0) {
      if (!read_keys()) return 0;
      changed = true;
    } else if (watched[0].revents != 0) {
      return 0;
    }
    if (watched[2].revents != 0 && source_.hear()) {
      if (view_.wanted.tree) add_families(source_.last());
      changed = true;
    }
    if (source_.refusal()) return *source_.refusal();
  }
}

int look(TopSource& source, Wishes& wishes, const Output& output) {
  Result<top::Terminal> terminal = top::Terminal::open();
  if (!terminal) return output.fail(terminal.error());
  Result<int> ended = 0;
  {
    Session session(source, wishes, *terminal);
    ended = session.run();
    terminal->leave();
  }
  if (!ended) return output.fail(ended.error());
  if (*ended != 0) (void)raise(*ended);
  return kExitOk;
}

int run_top(const Parsed& parsed, const Output& output) {
  Result<Wishes> wishes = parse_wishes(parsed, output);
  if (!wishes) return output.fail(wishes.error());
  Result<runner::DaemonClient> client = runner::DaemonClient::open_for_jobs();
  if (!client && client.error().code == ErrorCode::kNotFound) {
    output.say("no daemon runs, so no job waits or runs; mete cards starts one");
    return kExitOk;
  }
  if (!client) return output.fail(client.error());
  TopSource source(*std::move(client), net::Milliseconds(wishes->every_ms));
  if (output.json()) return print_once(source, *wishes, output);
  if (const Result<void> begun = source.begin(kFirstWait); !begun)
    return output.fail(begun.error());
  if (const Result<void> r = runner::check_told_simulation(source.snapshot()->daemon); !r)
    return output.fail(r.error());
  if (wishes->once) return print_once(source, *wishes, output);
  if (!wishes->plain) return look(source, *wishes, output);
  const Result<int> ended = announce(source, *wishes, output);
  if (!ended) return output.fail(ended.error());
  if (*ended != 0) (void)raise(*ended);
  return kExitOk;
}

}  // namespace

const Verb kTopVerb{
    "top",
    "show cards, jobs and the queue on a live screen",
    "mete top [--once] [--every SECONDS] [--readonly] [--no-unicode]\n"
    "         [--plain] [-o json]",
    "mete top\n"
    "mete top --once             # print once, as into a pipe\n"
    "mete top --plain            # sentences, for a screen reader\n"
    "mete top --once -o json | jq '.queue.depth'",
    "Shows the cards with the grant and the use of each job, the jobs, processes outside mete, and "
    "the queue with the reason for each wait. Press h for the keys: arrows, Enter for details of a "
    "job, l for its log, t for processes, s to sort, / to filter, c to cancel, H to hold, R to "
    "release, T, K and I to send signals to your own processes. Into a pipe, mete top prints once; "
    "on a terminal without cursor control it "
    "prints sentences.",
    kTopOptions,
    Rest::kNothing,
    run_top,
};

}  // namespace mete::cli
