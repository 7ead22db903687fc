// SPDX-License-Identifier: Apache-2.0
// `mete selftest`: shows on the user's own card that the promises of a cap hold. It runs `mete cap`
// with mete-selftest (src/selftest) inside, exactly as a user would run a program, reads its rows
// and prints them. This file decides the result: one failed row is exit code 1.
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/json.h"
#include "cli/verbs.h"
#include "launch/parts.h"
#include "node/child.h"
#include "seam/clock.h"

namespace mete::cli {

namespace {

// Below 2^32, so that the 32-bit queries of old programs can tell the cap from the card.
constexpr Bytes kUsualCap = Bytes::from_mib(4000);
// Three contexts and some memory to fill.
constexpr Bytes kSmallestCap = Bytes::from_mib(2048);
// Left to other processes on the card.
constexpr Bytes kLeftFree = Bytes::from_mib(512);

constexpr std::array kSelftestOptions{
    OptionSpec{"--gpu", "SHARE",
               "the limit to test with, on one card, as in mete cap (default: 4000M, or less if "
               "less is free)"},
    OptionSpec{
        "--device", "N",
        "the card to test: a number or a UUID (default: the card with the most free memory)"},
    OptionSpec{"--only", "GROUP",
               "run only this group of checks: start, lookups, linear, virtual, pools, managed, "
               "managed-current, graphs, arrays, contexts, old, queries, nvml, sharing, deaths; "
               "repeatable",
               "", true},
    kOutputOption,
};

constexpr std::array kGroups = std::to_array<std::string_view>(
    {"start", "lookups", "linear", "virtual", "pools", "managed", "managed-current", "graphs",
     "arrays", "contexts", "old", "queries", "nvml", "sharing", "deaths"});

// A card in the output of mete-selftest --cards.
struct SeenCard {
  std::string index;
  std::string uuid;
  std::string bus;
  std::string serial;
  std::uint64_t free = 0;
  std::string name;
};

struct Row {
  std::string verdict;  // ok, failed, skipped
  std::string group;
  std::string promise;
  std::string entry;
  std::string evidence;
};

struct Plan {
  launch::Parts parts;
  bool simulated = false;
  std::vector<SeenCard> cards;
  std::string share;
  std::string device;  // "": what `mete cap` chooses
  std::vector<std::string> only;
};

// Empty if the driver does not answer: `mete cap` then reports why.
std::vector<SeenCard> read_cards(const Plan& plan) {
  const std::string nvml = plan.simulated ? base::join_path(plan.parts.simgpu, "libnvidia-ml.so.1")
                                          : "libnvidia-ml.so.1";
  const Result<node::ChildAnswer> answer = node::run_child(
      {plan.parts.selftest, {"--cards", nvml}, base::own_environment()}, seam::system_clock());
  std::vector<SeenCard> cards;
  if (!answer || answer->exit_code != 0) return cards;
  for (const std::string_view line : base::split(answer->output, '\n')) {
    const std::vector<std::string_view> parts = base::split(line, '\t');
    if (parts.size() != 7) continue;
    const Result<std::uint64_t> free = base::parse_uint(parts[5]);
    cards.push_back({std::string(parts[0]), std::string(parts[1]), std::string(parts[2]),
                     std::string(parts[3]), free ? *free : 0, std::string(parts[6])});
  }
  return cards;
}

// The emptiest card; among equals the last, so that an order other than the driver's would show.
const SeenCard* emptiest(const std::vector<SeenCard>& cards) {
  const SeenCard* best = nullptr;
  for (const SeenCard& card : cards)
    if (best == nullptr || card.free >= best->free) best = &card;
  return best;
}

Result<void> choose_share(Plan& plan, const SeenCard* card) {
  plan.share = to_exact_string(kUsualCap);
  if (card == nullptr) return {};
  const Bytes free = Bytes::from_bytes(card->free);
  if (free >= kUsualCap + kLeftFree) return {};
  if (free < kSmallestCap + kLeftFree) {
    return Error::exhausted("card " + card->index + " has too little free memory for a self-test")
        .with_evidence(to_string(free) + " are free; " + to_string(kSmallestCap + kLeftFree) +
                       " are needed")
        .with_hint("choose another card with --device, or a cap of your own with --gpu");
  }
  plan.share = to_exact_string((free - kLeftFree).round_down(Bytes::from_mib(2)));
  return {};
}

Result<Plan> make_plan(const Parsed& parsed) {
  Plan plan;
  plan.only = parsed.all("--only");
  for (const std::string& name : plan.only) {
    if (std::find(kGroups.begin(), kGroups.end(), name) == kGroups.end()) {
      const std::vector<std::string_view> names(kGroups.begin(), kGroups.end());
      const std::string_view near = base::nearest(name, names);
      return Error::invalid("--only " + base::quote(name) + ": there are no such checks")
          .with_hint(near.empty() ? "mete selftest --help names them"
                                  : "did you mean --only " + std::string(near) + "?");
    }
  }
  Result<launch::Parts> parts = launch::find_parts();
  if (!parts) return std::move(parts).error();
  plan.parts = *std::move(parts);
  if (plan.parts.selftest.empty()) {
    return Error::io("mete-selftest is missing")
        .with_hint("build or install all of mete: cmake --build --preset release");
  }
  plan.simulated = !base::variable("METE_SIM").empty();
  plan.cards = read_cards(plan);

  const SeenCard* card = nullptr;
  if (const std::string* device = parsed.find("--device"); device != nullptr) {
    plan.device = *device;
    for (const SeenCard& seen : plan.cards)
      if (seen.index == *device || seen.uuid == *device) card = &seen;
  } else if (std::getenv("CUDA_VISIBLE_DEVICES") == nullptr) {
    // Otherwise the user has chosen already, and `mete cap` follows that.
    card = emptiest(plan.cards);
    if (card != nullptr) plan.device = card->index;
  }
  if (const std::string* share = parsed.find("--gpu"); share != nullptr) {
    plan.share = *share;
    return plan;
  }
  if (Result<void> r = choose_share(plan, card); !r) return std::move(r).error();
  return plan;
}

std::vector<std::string> command_of(const Plan& plan, const std::string& self, bool json) {
  std::vector<std::string> words{self, "cap", "--quiet", "--gpu", plan.share};
  if (json) words.insert(words.end(), {"--output", "json"});
  if (!plan.device.empty()) words.insert(words.end(), {"--devices", plan.device});
  words.insert(words.end(), {"--", plan.parts.selftest, "--all"});
  for (const std::string& name : plan.only) words.insert(words.end(), {"--only", name});
  for (const SeenCard& card : plan.cards)
    words.insert(words.end(), {"--card", card.uuid + "," + card.bus + "," + card.serial});
  return words;
}

// A progress line on a terminal, which vanishes at the end.
class Progress {
 public:
  explicit Progress(bool wanted) : shown_(wanted && isatty(STDERR_FILENO) == 1) {}
  void step(std::size_t rows, const Row& row) const {
    if (shown_)
      std::fprintf(stderr, "\r\033[K%zu checks, %s: %.40s", rows, row.group.c_str(),
                   row.entry.c_str());
  }
  void end() const {
    if (shown_) std::fputs("\r\033[K", stderr);
  }

 private:
  bool shown_;
};

struct Outcome {
  std::vector<Row> rows;
  bool complete = false;
  int exit_code = 0;
};

bool take_line(std::string_view line, Outcome& outcome) {
  if (line == "end") {
    outcome.complete = true;
    return false;
  }
  const std::vector<std::string_view> parts = base::split(line, '\t');
  if (parts.size() != 5) return false;
  outcome.rows.push_back({std::string(parts[0]), std::string(parts[1]), std::string(parts[2]),
                          std::string(parts[3]), std::string(parts[4])});
  return true;
}

void read_rows(int fd, const Progress& progress, Outcome& outcome) {
  std::string pending;
  char buffer[4096];
  for (;;) {
    const ssize_t bytes = read(fd, buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return;
    pending.append(buffer, static_cast<std::size_t>(bytes));
    for (std::size_t end = pending.find('\n'); end != std::string::npos; end = pending.find('\n')) {
      if (take_line(std::string_view(pending).substr(0, end), outcome))
        progress.step(outcome.rows.size(), outcome.rows.back());
      pending.erase(0, end + 1);
    }
  }
}

Result<Outcome> run_checks(const Plan& plan, bool json) {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) return Error::from_errno("read /proc/self/exe", errno);
  self[length] = '\0';
  Result<base::Pipe> pipe = base::make_pipe();
  if (!pipe) return std::move(pipe).error();
  const std::vector<std::string> words = command_of(plan, self, json);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe->write.get(), STDOUT_FILENO);
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, self, &actions, nullptr, base::pointers(words).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Error::from_errno("start mete cap", error);
  pipe->write.reset();
  Outcome outcome;
  const Progress progress(!json);
  read_rows(pipe->read.get(), progress, outcome);
  progress.end();
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return outcome;
}

std::size_t count(const std::vector<Row>& rows, std::string_view verdict) {
  return static_cast<std::size_t>(std::count_if(
      rows.begin(), rows.end(), [&](const Row& row) { return row.verdict == verdict; }));
}

// Rows grouped by promise, in the order in which the promises first appear.
std::string table(const Plan& plan, const std::vector<Row>& rows) {
  std::vector<std::string> promises;
  std::size_t width = 0;
  for (const Row& row : rows) {
    if (std::find(promises.begin(), promises.end(), row.promise) == promises.end())
      promises.push_back(row.promise);
    width = std::max(width, row.entry.size());
  }
  std::string text;
  for (const std::string& promise : promises) {
    text += promise + "\n";
    for (const Row& row : rows) {
      if (row.promise != promise) continue;
      const std::string verdict = row.verdict == "ok"       ? "ok  "
                                  : row.verdict == "failed" ? "FAIL"
                                                            : "skip";
      text += "  " + verdict + "  " + row.entry + std::string(width - row.entry.size() + 2, ' ') +
              row.evidence + "\n";
    }
  }
  text += "\n" + plan.share + " on ";
  for (const SeenCard& card : plan.cards)
    if (card.index == plan.device || card.uuid == plan.device)
      text += "card " + card.index + " (" + card.name + (plan.simulated ? ", simulated" : "") + ")";
  if (text.ends_with(" on ")) text += "one card";
  return text + ": " + std::to_string(count(rows, "ok")) + " ok, " +
         std::to_string(count(rows, "failed")) + " failed, " +
         std::to_string(count(rows, "skipped")) + " skipped";
}

std::string document(const Plan& plan, const std::vector<Row>& rows) {
  std::vector<std::string> checks;
  checks.reserve(rows.size());
  for (const Row& row : rows) {
    checks.push_back(JsonObject()
                         .text("group", row.group)
                         .text("promise", row.promise)
                         .text("entry", row.entry)
                         .text("verdict", row.verdict)
                         .text("evidence", row.evidence)
                         .str());
  }
  JsonObject json;
  json.text("schema", "mete.selftest/1").text("at", timestamp()).text("request", plan.share);
  for (const SeenCard& card : plan.cards)
    if (card.index == plan.device || card.uuid == plan.device)
      json.text("card", card.uuid).text("name", card.name);
  return json.raw("simulated", plan.simulated ? "true" : "false")
      .number("ok", count(rows, "ok"))
      .number("failed", count(rows, "failed"))
      .number("skipped", count(rows, "skipped"))
      .raw("checks", json_array(checks))
      .str();
}

int run_selftest(const Parsed& parsed, const Output& output) {
  const Result<Plan> plan = make_plan(parsed);
  if (!plan) return output.fail(plan.error());
  const Result<Outcome> outcome = run_checks(*plan, output.json());
  if (!outcome) return output.fail(outcome.error());
  // `mete cap` has reported what was wrong.
  if (outcome->rows.empty() && outcome->exit_code != 0) return outcome->exit_code;
  if (outcome->rows.empty() || (!outcome->complete && outcome->exit_code == 0))
    return output.fail(Error::io("the self-test came to no end"));
  output.data(output.json() ? document(*plan, outcome->rows) : table(*plan, outcome->rows));
  if (!outcome->complete) {
    return output.fail(
        Error::io("the self-test came to no end")
            .with_evidence("mete cap ended with " + std::to_string(outcome->exit_code)));
  }
  if (count(outcome->rows, "failed") == 0) return kExitOk;
  if (!output.json()) {
    output.say(
        "hint: a promise does not hold here; please report it, with this table, the driver's "
        "version and `mete version`");
  }
  return 1;
}

}  // namespace

const Verb kSelftestVerb{
    "selftest",
    "check on your own card that the limit holds",
    "mete selftest [options]",
    "mete selftest\n"
    "mete selftest --device 1 --gpu 8G\n"
    "mete selftest -o json\n"
    "METE_SIM=2xH200 mete selftest                       # simulated cards",
    "Runs a program under a limit. The program allocates memory in every way the driver offers, "
    "and mete compares the charged bytes with the bytes that the driver reports. Takes less than a "
    "minute and no more memory than the limit.\n"
    "\n"
    "Exit code: 0 if every check passed, 1 if one failed; 64 usage, 69 can never fit on this "
    "machine, 75 no room on the card now, 125 mete failed.",
    kSelftestOptions,
    Rest::kNothing,
    run_selftest,
};

}  // namespace mete::cli
