// SPDX-License-Identifier: Apache-2.0
// `mete logs ID...`: the output of jobs. The daemon knows the paths; the files are read here, as
// the calling user, and by root as the job's user. Logs finds the jobs and opens a LogReader each,
// Printer prints what they have under a heading. With -f, follow() alternates between the daemon's
// wait for the end and new output, until all jobs have ended and everything is printed.
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/moment.h"
#include "base/text.h"
#include "cli/json.h"
#include "cli/log_reader.h"
#include "cli/named_jobs.h"
#include "cli/verbs.h"
#include "launch/identity.h"
#include "runner/lasting_client.h"
#include "seam/clock.h"
#include "wire/job_text.h"
#include "wire/ps_lines.h"
#include "wire/show.h"

namespace mete::cli {

namespace {

constexpr std::array kLogsOptions{
    OptionSpec{"--follow", "", "continue until the job has ended", "-f"},
    OptionSpec{"--tail", "N", "print the last N lines only", "-n"},
    OptionSpec{"--since", "TIME",
               "print only output since this time: 10m (ago), 14:05, 2026-11-15"},
    OptionSpec{"--err", "", "print the file of mete submit --err instead of the log"},
    kOutputOption,
};
constexpr int kFollowTickMs = 1'000;
constexpr std::size_t kMaxFollowed = 100;

// A job and its log.
struct Source {
  core::JobId id;
  wire::ShowDocument shown;
  std::string path;
  // Whose folders the path leads through: root follows no link there that this user could not.
  launch::Identity owner = {};
  std::optional<LogReader> reader = {};
  bool refused = false;  // unreadable, and reported
};

bool file_exists(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

bool never_ran(const core::Job& job) { return !job.started && job.attempts.empty(); }

// Prints several logs, each under its name.
class Printer {
 public:
  Printer(bool several, const Output& output) : several_(several), output_(output) {}

  // Prints everything that is there now; returns whether there was something.
  Result<bool> print(Source& source) {
    bool some = false;
    for (;;) {
      const Result<std::string> block = next_of(source);
      if (!block) return block.error();
      if (block->empty()) return some;
      head(source);
      some = true;
      output_.bytes(*block);
      if (output_.failed()) return some;
    }
  }

 private:
  static Result<std::string> next_of(Source& source) {
    const Result<launch::RightsOf> rights = launch::RightsOf::take(source.owner);
    if (!rights) return rights.error();
    return source.reader->next();
  }

  void head(const Source& source) {
    if (!several_ || last_ == source.id) return;
    output_.bytes(std::string(last_ ? "\n" : "") + "==> job " + to_string(source.id) + " <==\n");
    last_ = source.id;
  }

  bool several_;
  const Output& output_;
  std::optional<core::JobId> last_;
};

class Logs {
 public:
  Logs(runner::DaemonClient client, LogReader::From from, bool err, const Output& output)
      : client_(std::move(client)), from_(from), err_(err), output_(output), failures_(output) {}

  // False: the daemon does not answer.
  bool find(const std::vector<std::string>& words) {
    ids_ = named_jobs(words, client_.http().path(), failures_);
    for (const core::JobId id : ids_)
      if (!client_.silent()) add(id);
    return !client_.silent();
  }
  int exit_code() const { return failures_.exit_code(); }

  int list() {
    std::vector<std::string> logs;
    for (const Source& source : sources_) {
      JsonObject log;
      log.text("id", to_string(source.id));
      log.text("state", to_string(source.shown.view.job.state));
      log.text("log", source.shown.log);
      if (!source.shown.err.empty()) log.text("err", source.shown.err);
      struct stat status {};
      const Result<launch::RightsOf> rights = launch::RightsOf::take(source.owner);
      if (rights && stat(source.path.c_str(), &status) == 0)
        log.number("size_bytes", static_cast<std::uint64_t>(status.st_size));
      logs.push_back(log.str());
    }
    output_.data(JsonObject()
                     .text("schema", "mete.logs/1")
                     .text("at", timestamp())
                     .raw("logs", json_array(logs))
                     .str());
    return failures_.exit_code();
  }

  int print() {
    Printer printer(sources_.size() > 1, output_);
    for (Source& source : sources_) {
      if (!open(source)) {
        say_missing(source);
        continue;
      }
      if (const Result<bool> printed = printer.print(source); !printed)
        failures_.add(printed.error());
    }
    return failures_.exit_code();
  }

  int follow() {
    if (sources_.size() > kMaxFollowed)
      return output_.fail(
          Error::invalid(std::to_string(sources_.size()) + " logs are too many to follow")
              .with_hint("mete logs -f " + to_string(sources_.front().id)));
    runner::LastingClient daemon(std::move(client_), output_.talk());
    Printer printer(sources_.size() > 1, output_);
    for (const Source& source : sources_)
      if (never_ran(source.shown.view.job))
        output_.say(wire::sentence(source.shown.view, source.shown.at));
    // Waits for the jobs one after the other: the answer for a job that has ended comes at once.
    for (std::size_t waited = 0; waited < ids_.size(); ++waited) {
      daemon.begin(job_target(ids_[waited], "/wait"));
      std::optional<Result<std::string>> over;
      while (!(over = daemon.next(net::Milliseconds(0)))) {
        if (!print_new(printer)) return failures_.exit_code();
        pause(daemon);
      }
      if (!*over) failures_.add(over->error());
    }
    (void)print_new(printer);
    for (Source& source : sources_)
      if (!source.reader && !source.refused) say_missing(source);
    return failures_.exit_code();
  }

 private:
  void add(core::JobId id);
  bool open(Source& source);
  void say_missing(const Source& source);
  bool print_new(Printer& printer);
  void pause(const runner::LastingClient& daemon);

  runner::DaemonClient client_;
  LogReader::From from_;
  bool err_;
  const Output& output_;
  Failures failures_;
  std::vector<core::JobId> ids_;  // as named on the command line
  std::vector<Source> sources_;
};

void Logs::add(core::JobId id) {
  const Result<std::string> body = client_.call("GET", job_target(id, "/show"));
  Result<wire::ShowDocument> shown = body ? wire::decode_show(*body) : body.error();
  if (!shown) return failures_.add(shown.error());
  if (!shown->view.job.spec->detached)
    return failures_.add(
        Error::unsupported("job " + to_string(id) + " has no log")
            .with_evidence("it was started by mete run, and wrote to that terminal"));
  if (shown->elements.empty()) {
    std::string path = err_ ? shown->err : shown->log;
    if (path.empty())
      return failures_.add(Error::io("job " + to_string(id) + " has no file of its own for errors")
                               .with_hint("leave --err out: they are in its log"));
    const launch::Identity owner =
        geteuid() == 0 ? launch::identity_of(shown->view.job.spec->uid) : launch::Identity();
    sources_.push_back({id, *std::move(shown), std::move(path), owner});
    return;
  }
  // Each job of an array has its own log.
  const Result<std::string> list = client_.call("GET", "/v1/jobs?all=1&id=" + to_string(id));
  const Result<std::vector<wire::JobView>> views = list ? wire::decode_ps(*list) : list.error();
  if (!views) return failures_.add(views.error());
  for (const wire::JobView& view : *views)
    if (!client_.silent()) add(view.job.id);
}

// False: there is no log, or not yet.
bool Logs::open(Source& source) {
  if (source.reader) return true;
  if (source.refused) return false;
  const core::Job& job = source.shown.view.job;
  LogReader::From from = from_;
  from.began = job.submitted;
  bool exists = false;
  const auto open_as_owner = [&]() -> Result<LogReader> {
    const Result<launch::RightsOf> rights = launch::RightsOf::take(source.owner);
    if (!rights) return rights.error();
    exists = file_exists(source.path);
    return LogReader::open(source.path, from);
  };
  Result<LogReader> reader = open_as_owner();
  if (reader) {
    source.reader.emplace(*std::move(reader));
    if (const std::uint64_t gone = source.reader->gone(); gone != 0)
      output_.say("the first " + to_string(Bytes::from_bytes(gone)) + " of the output of job " +
                  to_string(source.id) + " are not kept any more");
    return true;
  }
  // A log that could not be read does not become readable by retrying.
  const bool missing = reader.error().code == ErrorCode::kNotFound && !exists;
  if (!missing) failures_.add(reader.error());
  source.refused = !missing;
  return false;
}

void Logs::say_missing(const Source& source) {
  if (source.refused) return;
  // Nothing is missing from a job that never ran.
  if (never_ran(source.shown.view.job))
    return output_.say(wire::sentence(source.shown.view, source.shown.at));
  failures_.add(Error::io("the log of job " + to_string(source.id) + " is not there any more")
                    .with_evidence(source.path));
}

// False: stdout is closed.
bool Logs::print_new(Printer& printer) {
  for (Source& source : sources_) {
    if (!open(source)) continue;
    source.reader->heard();
    if (const Result<bool> printed = printer.print(source); !printed) {
      failures_.add(printed.error());
      source.reader.reset();
      source.refused = true;
    }
  }
  return !output_.failed() && !nobody_reads();
}

void Logs::pause(const runner::LastingClient& daemon) {
  std::vector<pollfd> ready{{daemon.descriptor(), POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
  for (const Source& source : sources_)
    if (source.reader) ready.push_back({source.reader->descriptor(), POLLIN, 0});
  (void)poll(ready.data(), ready.size(), kFollowTickMs);
}

Result<LogReader::From> parse_from(const Parsed& parsed) {
  LogReader::From from;
  if (const std::string* tail = parsed.find("--tail"); tail != nullptr) {
    const Result<std::uint64_t> lines = base::parse_uint(*tail);
    if (!lines)
      return Error::invalid("--tail " + base::quote(*tail) + " is no number of lines")
          .with_hint("write --tail 100");
    from.tail = *lines;
  }
  if (const std::string* since = parsed.find("--since"); since != nullptr) {
    const Result<WallTime> moment = parse_since(*since, seam::system_clock().wall());
    if (!moment) return Error(moment.error()).within("--since");
    from.since = *moment;
  }
  return from;
}

int run_logs(const Parsed& parsed, const Output& output) {
  const Result<LogReader::From> from = parse_from(parsed);
  if (!from) return output.fail(from.error());
  Result<runner::DaemonClient> client = open_for_words("logs", parsed.rest);
  if (!client) return output.fail(client.error());
  Logs logs(*std::move(client), *from, parsed.has("--err"), output);
  if (!logs.find(parsed.rest)) return logs.exit_code();
  if (output.json()) return logs.list();
  return parsed.has("--follow") ? logs.follow() : logs.print();
}

}  // namespace

const Verb kLogsVerb{
    "logs",
    "print the output of jobs",
    "mete logs ID... [-f] [--tail N] [--since TIME] [--err] [-o json]",
    "mete logs 12\n"
    "mete logs -f @              # your last job, until it has ended\n"
    "mete logs --tail 100 12_3\n"
    "mete logs --since 10m 12",
    "For an array, prints the log of each job under the job's name. -f continues across log "
    "rotation, removal of the file and restarts of the daemon; it stops when the job has ended and "
    "all output is printed. Ctrl-C stops mete logs, not the job. --since is accurate to about a "
    "second. With -o json, prints the paths of the logs instead of their content.",
    kLogsOptions,
    Rest::kWords,
    run_logs,
};

}  // namespace mete::cli
