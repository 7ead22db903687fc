// SPDX-License-Identifier: Apache-2.0
// `mete ps`: the jobs that the daemon knows. If no daemon runs and none has left jobs behind, none
// is started. A daemon that has ended and left jobs behind is started again, since only it knows
// them: an empty list means that there is no job. Ten thousand jobs are listed within some 50 ms:
// for the table the daemon sends lines (wire/ps_lines.h), and its JSON is passed on unchanged.
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/text.h"
#include "cli/job_ref.h"
#include "cli/named_jobs.h"
#include "cli/ps_table.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "cli/watch.h"
#include "net/http.h"
#include "runner/daemon_client.h"
#include "seam/clock.h"
#include "wire/job.h"
#include "wire/ps_lines.h"

namespace mete::cli {

namespace {

constexpr std::array kPsOptions{
    OptionSpec{"--all", "", "include ended jobs", "-a"},
    OptionSpec{"--user", "NAME", "list only jobs of this user", "-u"},
    OptionSpec{"--mine", "", "list only your own jobs"},
    OptionSpec{"--state", "STATE",
               "list only jobs in these states, separated by commas: pending,running"},
    OptionSpec{"--name", "NAME", "list only jobs with this name; * and ? are wildcards"},
    OptionSpec{"--columns", "NAMES", "print only these columns, separated by commas: id,user,used"},
    OptionSpec{"--wide", "", "print whole commands and reasons, the sizes of grants, and the user",
               "-w"},
    OptionSpec{"--expand", "", "print each waiting job of an array on a line of its own"},
    kWatchOption,
    OptionSpec{"--quiet", "",
               "print job numbers only; other users' jobs only with --user (administrators: all)",
               "-q"},
    kOutputOption,
};

// What is to be listed, and how.
struct Question {
  bool all = false;
  bool mine = false;
  bool others = true;  // also the jobs of other users, as far as they are shown
  std::string user;
  std::vector<core::JobState> states;
  std::string name;
  std::vector<core::JobId> ids;
  std::optional<std::vector<std::size_t>> columns;
  PsWishes wishes;

  bool filters() const { return !states.empty() || !name.empty() || !ids.empty(); }
  bool wants(const core::Job& job) const {
    const bool state =
        states.empty() || std::find(states.begin(), states.end(), job.state) != states.end();
    // A name that is not shown matches nothing, not even "*".
    return state && (name.empty() || (!job.spec->name.empty() &&
                                      fnmatch(name.c_str(), job.spec->name.c_str(), 0) == 0));
  }
  std::vector<std::string> targets() const {
    std::vector<std::string> query;
    if (all) query.emplace_back("all=1");
    if (mine) query.emplace_back("mine=1");
    if (others) query.emplace_back("others=1");
    if (!user.empty()) query.push_back("user=" + net::percent_encode(user));
    std::vector<std::string> each;
    for (const core::JobId id : ids) {
      query.push_back("id=" + to_string(id));
      each.push_back("/v1/jobs?" + base::join(query, "&"));
      query.pop_back();
    }
    if (ids.empty()) each.push_back("/v1/jobs?" + base::join(query, "&"));
    return each;
  }
};

Result<std::vector<core::JobState>> parse_states(const std::string& text) {
  std::vector<core::JobState> states;
  for (const std::string_view word : base::split(text, ',')) {
    const std::optional<core::JobState> state = core::parse_job_state(base::trim(word));
    if (!state)
      return Error::invalid("--state " + base::quote(word) + ": there is no such state")
          .with_hint("pending, starting, running, stopping or ended");
    states.push_back(*state);
  }
  return states;
}

Result<Question> parse_question(const Parsed& parsed) {
  Question question;
  for (const std::string& word : parsed.rest)
    if (const Result<JobRef> ref = parse_job_ref(word); !ref) return ref.error();
  question.all = parsed.has("--all") || !parsed.rest.empty();
  question.wishes = {geteuid(), parsed.has("--wide"), parsed.has("--expand")};
  if (const std::string* user = parsed.find("--user"); user != nullptr) question.user = *user;
  question.mine = parsed.has("--mine");
  if (question.mine && !question.user.empty())
    return Error::invalid("--mine and --user exclude each other").with_hint("give one of them");
  // What -q prints is for mete cancel and the like: other users' jobs only if they are asked for.
  question.others =
      !question.mine && (!parsed.has("--quiet") || !question.user.empty() || !parsed.rest.empty());
  if (const std::string* name = parsed.find("--name"); name != nullptr) question.name = *name;
  if (const std::string* names = parsed.find("--columns"); names != nullptr) {
    Result<std::vector<std::size_t>> columns = parse_columns(*names, kPsColumns);
    if (!columns) return std::move(columns).error();
    question.columns = *std::move(columns);
  }
  if (const std::string* text = parsed.find("--state"); text != nullptr) {
    Result<std::vector<core::JobState>> states = parse_states(*text);
    if (!states) return std::move(states).error();
    question.states = *std::move(states);
    question.all = question.all || std::find(question.states.begin(), question.states.end(),
                                             core::JobState::kEnded) != question.states.end();
  }
  return question;
}

// There is neither a daemon nor state that one has left behind.
int without_daemon(const Output& output) {
  if (output.json()) output.data(wire::encode_ps({}, seam::system_clock().wall()));
  output.say("no daemon runs, so no job waits or runs");
  return kExitOk;
}

// After an empty answer to the question about this target: a job that was named is not there.
void add_missing(const Question& question, std::size_t target, Failures& failures) {
  if (question.ids.empty() || !question.user.empty() || question.mine) return;
  failures.add(Error::not_found("there is no job " + to_string(question.ids[target]))
                   .with_hint("mete ps -a lists the jobs"));
}

// The document of the daemon is printed unchanged, without being parsed. With filters a new
// document is made.
int print_json(runner::DaemonClient& client, const Question& question, const Output& output,
               Failures& failures) {
  std::vector<wire::JobView> jobs;
  const std::vector<std::string> targets = question.targets();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    Result<std::string> body = client.call("GET", targets[i]);
    if (!body) return output.fail(body.error());
    if (!question.filters() && body->starts_with("{\"schema\":\"mete.ps/1\"")) {
      output.data(*std::move(body));
      return kExitOk;
    }
    Result<std::vector<wire::JobView>> some = wire::decode_ps(*body);
    if (!some) return output.fail(some.error());
    if (some->empty()) add_missing(question, i, failures);
    for (wire::JobView& view : *some)
      if (question.wants(view.job)) jobs.push_back(std::move(view));
  }
  output.data(wire::encode_ps(jobs, seam::system_clock().wall()));
  return kExitOk;
}

// Calls `take` for each job that is wanted, and `begin` with all lines before the first of them.
Result<void> read_jobs(runner::DaemonClient& client, const Question& question, Failures& failures,
                       const std::function<void(std::string_view lines)>& begin,
                       const std::function<void(const wire::JobView& view)>& take) {
  client.accept(std::string(wire::kPsLinesType));
  const std::vector<std::string> targets = question.targets();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Result<std::string> body = client.call("GET", targets[i]);
    if (!body) return body.error();
    begin(*body);
    bool some = false;
    Result<void> read = wire::decode_ps_lines(*body, [&](const wire::JobView& view) {
      some = true;
      if (question.wants(view.job)) take(view);
    });
    if (!read) return read;
    if (!some) add_missing(question, i, failures);
  }
  return {};
}

int print_ids(runner::DaemonClient& client, const Question& question, const Output& output,
              Failures& failures) {
  std::string ids;
  const Result<void> read = read_jobs(
      client, question, failures, [](std::string_view) {},
      [&ids](const wire::JobView& view) {
        ids.append(ids.empty() ? "" : "\n").append(to_string(view.job.id));
      });
  if (!read) return output.fail(read.error());
  if (!ids.empty()) output.data(ids);
  return kExitOk;
}

int print_table(runner::DaemonClient& client, const Question& question, const Output& output,
                Failures& failures) {
  PsTable table(seam::system_clock().wall(), question.wishes);
  if (question.columns) table.choose(*question.columns);
  const Result<void> read = read_jobs(
      client, question, failures, [&table](std::string_view lines) { table.expect(lines); },
      [&table](const wire::JobView& view) { table.add(view); });
  if (!read) return output.fail(read.error());
  if (!table.empty())
    output.data(table.text(stdout_width()));
  else if (failures.exit_code() == kExitOk)
    output.say(question.filters() || !question.user.empty() ? "there is no such job"
               : question.all                               ? "there are no jobs"
               : question.mine ? "no job of yours waits or runs; -a shows those that have ended"
                               : "no job waits or runs; -a shows those that have ended");
  return kExitOk;
}

int print_jobs(const Parsed& parsed, const Output& output) {
  Result<Question> question = parse_question(parsed);
  if (!question) return output.fail(question.error());
  Result<runner::DaemonClient> client = parsed.rest.empty() ? runner::DaemonClient::open_for_jobs()
                                                            : open_for_words("ps", parsed.rest);
  if (!client && client.error().code == ErrorCode::kNotFound && parsed.rest.empty())
    return without_daemon(output);
  if (!client) return output.fail(client.error());
  Failures failures(output);
  question->ids = named_jobs(parsed.rest, client->http().path(), failures);
  if (question->ids.empty() && !parsed.rest.empty()) return failures.exit_code();
  const int exit_code = output.json()           ? print_json(*client, *question, output, failures)
                        : parsed.has("--quiet") ? print_ids(*client, *question, output, failures)
                                                : print_table(*client, *question, output, failures);
  return failures.exit_code() != kExitOk ? failures.exit_code() : exit_code;
}

int run_ps(const Parsed& parsed, const Output& output) {
  if (const Result<Question> question = parse_question(parsed); !question)
    return output.fail(question.error());
  return run_or_watch(parsed, output, print_jobs);
}

}  // namespace

const Verb kPsVerb{
    "ps",
    "list waiting and running jobs",
    "mete ps [-a] [ID...] [--mine | --user NAME] [--state STATE] [--name NAME]\n"
    "        [--columns NAMES] [--wide] [--expand] [--watch[=SECONDS]]\n"
    "        [-q] [-o json]",
    "mete ps\n"
    "mete ps -a                  # include your ended jobs\n"
    "mete ps -u alice            # only the jobs of this user\n"
    "mete ps --wide              # whole commands, and why each job waits\n"
    "mete ps --watch             # repeat every 2 seconds\n"
    "mete ps 12                  # all jobs of array 12\n"
    "mete cancel $(mete ps -q --name 'sweep*')\n"
    "mete ps -o json | jq -r '.jobs[].wait.for // empty'",
    "On a machine with a daemon for all users, other users' jobs are listed with user, share, "
    "cards, time and state, but without name and command, unless the administrator has set "
    "[sight] others to all or totals. --mine lists your own jobs. Administrators see everything. "
    "TIME is how long a job has waited or run. For a waiting job, NOTE is the forecast of its "
    "start and a short reason: ~14:20, 2 ahead. The waiting jobs of an array are one line: "
    "45_[3-9]. USER is shown if there are jobs of other users. Lines are cut to the width of the "
    "terminal; --wide prints everything. If a private daemon has ended and left jobs behind, mete "
    "ps starts it again. mete ls is an alias.",
    kPsOptions,
    Rest::kWords,
    run_ps,
    {},
    {"ls"},
};

}  // namespace mete::cli
