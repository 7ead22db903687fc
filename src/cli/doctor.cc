// SPDX-License-Identifier: Apache-2.0
// `mete doctor`: checks everything that mete needs, and says what is wrong and what helps. Starts
// no daemon, changes nothing, and never waits for ever: each group of checks runs in a helper
// process, all at the same time, and writes its results into a pipe; a helper that does not finish
// within kLimitMs is a failed check.
#include "cli/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/fd.h"
#include "base/text.h"
#include "cli/json.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "launch/helper_process.h"

namespace mete::cli {

namespace {

constexpr int kExitFound = 1;
constexpr int kLimitMs = 20'000;  // a driver that was just loaded takes seconds
constexpr std::array kDoctorOptions{kOutputOption};

struct Group {
  std::string_view name;
  void (*look)(Checks& checks);
};
constexpr std::array<Group, 5> kGroups{{
    {"driver", check_driver},
    {"program", check_program},
    {"state", check_state},
    {"daemon", check_daemon},
    {"system", check_system},
}};

Result<launch::HelperProcess> begin(const Group& group) {
  return launch::HelperProcess::start("mete-doctor", [&](launch::HelperProcess::Pipes pipes) {
    Checks checks;
    group.look(checks);
    (void)base::write_all(pipes.reply, encode_checks(checks) += launch::HelperProcess::kEndOfReply);
  });
}

Checks collect(const Group& group, Result<launch::HelperProcess>& helper) {
  if (!helper) return {{Verdict::kFail, "look", helper.error().message}};
  const Result<std::string> text = helper->collect(kLimitMs);
  if (!text && text.error().code == ErrorCode::kBusy)
    return {{Verdict::kFail, "look", "no answer within " + std::to_string(kLimitMs / 1000) + " s",
             group.name == "driver" ? "nvidia-smi: if it hangs too, reboot"
                                    : "a disk or a service hangs; sudo dmesg | tail says more"}};
  if (!text)
    return {{Verdict::kFail, "look", "the process that looked has died: " + text.error().message,
             "sudo dmesg | tail; please report it"}};
  Result<Checks> checks = decode_checks(*text);
  if (!checks) return {{Verdict::kFail, "look", checks.error().message}};
  return *std::move(checks);
}

struct Found {
  std::string_view group;
  Check check;
};

std::size_t count(const std::vector<Found>& found, Verdict verdict) {
  return static_cast<std::size_t>(std::count_if(
      found.begin(), found.end(), [&](const Found& one) { return one.check.verdict == verdict; }));
}

std::string summary(const std::vector<Found>& found) {
  return std::to_string(count(found, Verdict::kOk)) + " ok, " +
         std::to_string(count(found, Verdict::kWarn)) + " warnings, " +
         std::to_string(count(found, Verdict::kFail)) + " failed";
}

std::string table(const std::vector<Found>& found) {
  Table rows({{""}, {"WHAT"}, {"SEEN"}});
  for (const auto& [group, check] : found) {
    rows.add({check.verdict == Verdict::kFail ? "FAIL" : std::string(to_string(check.verdict)),
              std::string(group) + ": " + check.what, check.evidence});
    if (!check.fix.empty()) rows.add({" ", " ", "→ " + check.fix});
  }
  return rows.text(std::nullopt) + "\n\n" + summary(found);
}

std::string document(const std::vector<Found>& found) {
  std::vector<std::string> checks;
  for (const auto& [group, check] : found) {
    JsonObject json;
    json.text("group", group)
        .text("what", check.what)
        .text("verdict", to_string(check.verdict))
        .text("evidence", check.evidence);
    if (!check.fix.empty()) json.text("fix", check.fix);
    checks.push_back(json.str());
  }
  return JsonObject()
      .text("schema", "mete.doctor/1")
      .text("at", timestamp())
      .text("version", METE_VERSION)
      .number("ok", count(found, Verdict::kOk))
      .number("warnings", count(found, Verdict::kWarn))
      .number("failed", count(found, Verdict::kFail))
      .raw("checks", json_array(checks))
      .str();
}

// All helpers at once: several that hang take no longer than one.
std::vector<Found> look_at_all() {
  std::vector<Result<launch::HelperProcess>> helpers;
  for (const Group& group : kGroups) helpers.push_back(begin(group));
  std::vector<Found> found;
  for (std::size_t i = 0; i < kGroups.size(); ++i)
    for (Check& check : collect(kGroups[i], helpers[i]))
      found.push_back({kGroups[i].name, std::move(check)});
  return found;
}

int run_doctor(const Parsed&, const Output& output) {
  const std::vector<Found> found = look_at_all();
  output.data(output.json() ? document(found) : table(found));
  return count(found, Verdict::kFail) == 0 ? kExitOk : kExitFound;
}

}  // namespace

std::string doctor_text() { return table(look_at_all()) + "\n"; }

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kInfo:
      return "info";
    case Verdict::kWarn:
      return "warn";
    case Verdict::kFail:
      return "fail";
  }
  return "fail";
}

std::string encode_checks(const Checks& checks) {
  // Text from outside must not look like two fields.
  const auto field = [](std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n' || c == '\0'; }, ' ');
    return text;
  };
  std::string text;
  for (const Check& check : checks)
    text += base::join({std::string(to_string(check.verdict)), field(check.what),
                        field(check.evidence), field(check.fix)},
                       "\t") +
            "\n";
  return text;
}

Result<Checks> decode_checks(std::string_view text) {
  Checks checks;
  for (const std::string_view line : base::split(text, '\n')) {
    if (line.empty()) continue;
    const std::vector<std::string_view> fields = base::split(line, '\t');
    if (fields.size() != 4) return Error::corrupt("the helper process answers strangely");
    Check check{Verdict::kFail, std::string(fields[1]), std::string(fields[2]),
                std::string(fields[3])};
    for (const Verdict verdict : {Verdict::kOk, Verdict::kInfo, Verdict::kWarn})
      if (to_string(verdict) == fields[0]) check.verdict = verdict;
    checks.push_back(std::move(check));
  }
  return checks;
}

const Verb kDoctorVerb{
    "doctor",
    "check this machine for problems",
    "mete doctor [-o json]",
    "mete doctor\n"
    "mete doctor -o json | jq '.checks[] | select(.verdict != \"ok\")'\n"
    "METE_SIM=4xH200 mete doctor          # check for simulated cards",
    "Checks the driver, the cards, mete's own libraries, the state folder, the daemon, cgroups and "
    "limits. Each line is ok, info, warn or FAIL, with the evidence and a remedy. Changes nothing "
    "and starts no daemon. Exit code 0 if nothing fails, else 1.",
    kDoctorOptions,
    Rest::kNothing,
    run_doctor,
};

}  // namespace mete::cli
