// SPDX-License-Identifier: Apache-2.0
// `mete attach ID`: connects this terminal to the job's, until Ctrl-\ is typed twice or the job
// ends. The job was submitted with --tty; its keeper holds the other end. Session copies bytes
// between stdin, the keeper's socket and stdout in one poll loop; RawTerminal restores the terminal
// in every case. When the program hangs up, after_end() waits for the exit code from the daemon.
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/fd.h"
#include "base/file.h"
#include "cli/detach_keys.h"
#include "cli/named_jobs.h"
#include "cli/subword.h"
#include "cli/verbs.h"
#include "cli/wait_signals.h"
#include "launch/terminal_door.h"
#include "runner/lasting_client.h"
#include "wire/cards.h"
#include "wire/job_text.h"
#include "wire/keeper.h"
#include "wire/queue.h"
#include "wire/show.h"

namespace mete::cli {

namespace {

constexpr std::array kAttachOptions{
    OptionSpec{"--read-only", "", "send nothing to the program", "-r"},
};
constexpr int kHeldMs = 1'000;  // how long a first Ctrl-\ waits for the second
constexpr std::size_t kMaxUnsent = 64 << 10;
constexpr net::Milliseconds kEndsNow{500};  // for the daemon to learn of the end
constexpr int kEndPatience = 10;            // seconds, after the message that we wait

// Raw mode of the terminal at stdin, while this object lives.
class RawTerminal {
 public:
  RawTerminal() {
    if (tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios raw = before_;
    cfmakeraw(&raw);
    changed_ = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
  }
  ~RawTerminal() {
    if (!changed_) return;
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
    // Undoes what the program left behind: colours, a hidden cursor, half a line.
    constexpr std::string_view kPlain = "\033[0m\033[?25h\r\n";
    if (write(STDERR_FILENO, kPlain.data(), kPlain.size()) < 0) return;
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  termios before_{};
  bool changed_ = false;
};

// Connects this terminal to the job's.
class Session {
 public:
  enum class End { kDetached, kHungUp, kSignal, kNobodyReads };

  Session(Fd socket, bool reads) : socket_(std::move(socket)), reads_(reads) {}

  End go() {
    tell_size();
    for (;;) {
      std::array<pollfd, 3> ready{
          pollfd{signals_.descriptor(), POLLIN, 0},
          pollfd{socket_.get(), static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT), 0},
          pollfd{reads_ && unsent_.size() < kMaxUnsent ? STDIN_FILENO : -1, POLLIN, 0}};
      const int count = poll(ready.data(), ready.size(), keys_.holds() ? kHeldMs : -1);
      if (count == 0) unsent_ += launch::input_frame(keys_.flush());
      if (ready[0].revents != 0 && !heard_signal()) return End::kSignal;
      if (ready[2].revents != 0) typed();
      if (keys_.detached()) return End::kDetached;
      if (ready[1].revents != 0 && !show()) return nobody_reads_ ? End::kNobodyReads : End::kHungUp;
      if (!send()) return End::kHungUp;
    }
  }
  int signal() const { return signal_; }

 private:
  bool heard_signal() {
    const int number = signals_.take();
    if (number == SIGWINCH) tell_size();
    if (number == 0 || number == SIGWINCH) return true;
    signal_ = number;
    return false;
  }

  void tell_size() {
    winsize size{};
    if (reads_ && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0)
      unsent_ += launch::window_frame(size.ws_row, size.ws_col);
  }

  void typed() {
    std::array<char, 4096> keys{};
    const ssize_t got = read(STDIN_FILENO, keys.data(), keys.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) {  // the terminal is gone; if we are to end, a signal follows
      reads_ = false;
      return;
    }
    unsent_ += launch::input_frame(keys_.typed({keys.data(), static_cast<std::size_t>(got)}));
  }

  bool show() {
    std::array<char, 16 << 10> bytes{};
    const ssize_t got = recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0) return false;
    nobody_reads_ = !base::write_all(STDOUT_FILENO, {bytes.data(), static_cast<std::size_t>(got)});
    return !nobody_reads_;
  }

  bool send() {
    while (!unsent_.empty()) {
      const ssize_t sent =
          ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      // Output from before the hang-up is still to be shown: recv reports the end.
      if (sent < 0 && errno == EPIPE) unsent_.clear();
      if (sent < 0) return errno == EAGAIN || errno == EPIPE;
      unsent_.erase(0, static_cast<std::size_t>(sent));
    }
    return true;
  }

  // Blocked before the terminal is changed, so that no signal comes between.
  WaitSignals signals_{SIGWINCH};
  Fd socket_;
  bool reads_;
  bool nobody_reads_ = false;  // stdout is closed
  DetachKeys keys_;
  std::string unsent_;
  int signal_ = 0;
};

// The socket of a job's keeper.
Result<std::string> path_of(runner::DaemonClient& client, const core::Job& job) {
  const Result<std::string> body = client.call("GET", "/v1/daemon");
  const Result<wire::DaemonView> daemon = body ? wire::decode_daemon(*body) : body.error();
  if (!daemon) return daemon.error();
  std::string state = daemon->state_dir;
  if (daemon->mode == "system")
    state = base::join_path(base::join_path(state, "users"), std::to_string(job.spec->uid));
  return wire::terminal_path(state, job.id, job.attempt);
}

Result<void> check(const wire::ShowDocument& shown) {
  const core::Job& job = shown.view.job;
  const std::string id = to_string(job.id);
  if (!shown.elements.empty())
    return Error::invalid("job " + id + " is an array").with_hint("name one of it: " + id + "_0");
  if (!job.spec->detached || !job.spec->detached->tty)
    return Error::unsupported("job " + id + " has no terminal")
        .with_evidence(job.spec->detached ? "it was not submitted with --tty"
                                          : "it is a mete run, in somebody's own")
        .with_hint(job.spec->detached ? "mete logs -f " + id + " shows what it writes" : "");
  if (job.state == core::JobState::kEnded)
    return Error::invalid(wire::sentence(shown.view, shown.at))
        .with_hint("mete logs " + id + " shows what it wrote");
  if (job.state == core::JobState::kPending || job.state == core::JobState::kStarting)
    return Error::busy(wire::sentence(shown.view, shown.at))
        .with_hint("mete logs -f " + id + " waits for it");
  return {};
}

// The program hung up, normally because it has ended. The daemon learns of that now, and we exit
// with its code. Signals end us here too.
int after_end(runner::DaemonClient client, core::JobId id, const Output& output) {
  runner::LastingClient daemon(std::move(client), output.talk());
  daemon.begin(job_target(id, "/wait"));
  std::optional<Result<std::string>> body = daemon.next(kEndsNow);
  if (!body)
    output.say("the connection to job " + to_string(id) + " was cut; asking whether it has ended");
  for (int i = 0; !body && i < kEndPatience; ++i) body = daemon.next(net::Milliseconds(1'000));
  if (!body)
    return output.fail(Error::io("the connection to job " + to_string(id) + " was cut")
                           .with_evidence("nothing says that it has ended")
                           .with_hint("mete attach " + to_string(id)));
  const Result<wire::WaitDocument> ended =
      *body ? wire::decode_wait(**body) : Result<wire::WaitDocument>(body->error());
  if (!ended) return output.fail(ended.error());
  if (ended->jobs.empty()) return kExitOk;
  output.say(wire::sentence(ended->jobs.front(), ended->at));
  return wire::exit_code_of_job(ended->jobs.front().job);
}

int run_attach(const Parsed& parsed, const Output& output) {
  if (const Result<void> r = no_more_than(1, parsed.rest); !r) return output.fail(r.error());
  const bool reads = !parsed.has("--read-only");
  if (reads && (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1))
    return output.fail(Error::unsupported("mete attach needs a terminal")
                           .with_hint("--read-only shows the job's without one"));
  Result<runner::DaemonClient> client = open_for_words("attach", parsed.rest);
  if (!client) return output.fail(client.error());
  Failures failures(output);
  const std::vector<core::JobId> ids = named_jobs(parsed.rest, client->http().path(), failures);
  if (ids.size() != 1) return failures.exit_code() != kExitOk ? failures.exit_code() : kExitUsage;
  const Result<std::string> body = client->call("GET", job_target(ids.front(), "/show"));
  const Result<wire::ShowDocument> shown = body ? wire::decode_show(*body) : body.error();
  if (!shown) return output.fail(shown.error());
  if (const Result<void> r = check(*shown); !r) return output.fail(r.error());
  const Result<std::string> path = path_of(*client, shown->view.job);
  if (!path) return output.fail(path.error());
  Result<Fd> socket = launch::connect_terminal(*path, shown->view.job.spec->uid);
  if (!socket && socket.error().code == ErrorCode::kDenied) return output.fail(socket.error());
  if (!socket)
    return output.fail(
        Error::busy("the terminal of job " + to_string(ids.front()) + " cannot be reached")
            .with_evidence(socket.error().message));
  if (reads)
    output.say("attached to job " + to_string(ids.front()) + "; Ctrl-\\ twice leaves it running");
  Session::End end{};
  int signal = 0;
  {
    Session session(*std::move(socket), reads);
    std::optional<RawTerminal> raw;
    if (reads) raw.emplace();
    end = session.go();
    signal = session.signal();
  }
  if (end == Session::End::kSignal) return 128 + signal;
  if (end == Session::End::kNobodyReads) return 128 + SIGPIPE;
  if (end == Session::End::kHungUp) return after_end(*std::move(client), ids.front(), output);
  output.say("detached; job " + to_string(ids.front()) + " runs on");
  return kExitOk;
}

}  // namespace

const Verb kAttachVerb{
    "attach",
    "connect to the terminal of a job",
    "mete attach ID [--read-only]",
    "id=$(mete submit --tty --gpu 8G -- python); mete attach $id\n"
    "mete attach -r @            # read only",
    "Works for jobs that were submitted with --tty. Press Ctrl-\\ twice to detach; the job "
    "continues. A single Ctrl-\\ goes to the program after one second. Several clients can attach "
    "at the same "
    "time. When the program ends, mete attach returns its exit "
    "code, like mete wait.",
    kAttachOptions,
    Rest::kWords,
    run_attach,
};

}  // namespace mete::cli
