// SPDX-License-Identifier: Apache-2.0
#include "daemon/repair.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/exit_code.h"
#include "base/file.h"
#include "base/text.h"
#include "base/time.h"
#include "seam/clock.h"
#include "store/repair.h"
#include "wire/job.h"
#include "wire/json_text.h"

namespace mete::daemon {

namespace {

constexpr std::size_t kNamed = 20;  // lost jobs that are listed
// A file with a larger number in its name was not made by us.
constexpr std::uint64_t kHighestJob = 1'000'000'000'000;

}  // namespace

std::string stamp(WallTime now) {
  std::string text = to_string(now);
  text.resize(std::min<std::size_t>(text.size(), 19));
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return text + "Z";
}

// Records of keepers, grant files and logs begin with their job's number: "12.1", "12_3.log". In
// system mode each user has a folder with grants and logs.
std::uint64_t highest_job_in(const std::string& state_dir) {
  namespace fs = std::filesystem;
  std::vector<std::string> folders{state_dir};
  std::error_code failed;
  for (const auto& user : fs::directory_iterator(base::join_path(state_dir, "users"), failed))
    folders.push_back(user.path());
  std::uint64_t highest = 0;
  for (const std::string& folder : folders) {
    for (const char* kind : {"keep", "grants", "logs"}) {
      for (const auto& entry : fs::directory_iterator(base::join_path(folder, kind), failed)) {
        const std::string name = entry.path().filename();
        const std::string digits = name.substr(0, name.find_first_not_of("0123456789"));
        if (const Result<std::uint64_t> number = base::parse_uint(digits))
          highest = std::max(highest, std::min(*number, kHighestJob));
      }
    }
  }
  return highest;
}

int tell_failure(const Error& error, bool json, int exit_code) {
  if (json) {
    (void)std::fprintf(stderr, "%s\n", wire::encode_error(error, exit_code).c_str());
    return exit_code;
  }
  (void)std::fprintf(stderr, "error: %s\n", error.message.c_str());
  if (!error.evidence.empty()) (void)std::fprintf(stderr, "  %s\n", error.evidence.c_str());
  if (!error.hint.empty()) (void)std::fprintf(stderr, "hint: %s\n", error.hint.c_str());
  return exit_code;
}

namespace {

std::string document(const store::Repaired& done, WallTime at) {
  wire::JsonText out;
  out.open();
  out.put("schema", "mete.repair/1");
  out.put("at", at);
  out.put("whole", done.was_whole);
  if (!done.was_whole) {
    out.put("why", done.why);
    out.put_if("copy", std::string_view(done.copy));
    out.put("kept_seq", done.kept);
    out.put("lost_events", done.lost);
    out.put("lost_jobs", done.lost_jobs);
    out.put("lost_contents", done.lost_contents);
  }
  out.close();
  return out.take() + "\n";
}

std::string lines(const store::Repaired& done) {
  if (done.was_whole) return "nothing is damaged, and nothing was done\n";
  std::string text = done.why + "\n";
  text += "  saved   all up to event " + std::to_string(done.kept) + "\n";
  if (done.lost == 0) {
    text += "  lost    nothing that was recorded\n";
  } else {
    text += "  lost    " + std::to_string(done.lost) + (done.lost == 1 ? " event, " : " events, ") +
            std::to_string(done.kept + 1) +
            (done.lost == 1 ? "" : " to " + std::to_string(done.kept + done.lost)) + "\n";
    std::vector<std::string> named = done.lost_jobs;
    const std::size_t more = named.size() - std::min(named.size(), kNamed);
    named.resize(named.size() - more);
    if (!named.empty())
      text += "          among them the jobs " + base::join(named, ", ") +
              (more == 0 ? "" : ", and " + std::to_string(more) + " more") + "\n";
  }
  if (done.lost_contents != 0)
    text += "  lost    " + std::to_string(done.lost_contents) +
            " environments, scripts or commands; jobs that need them fail to start\n";
  if (!done.copy.empty()) text += "  copy    " + done.copy + "\n";
  return text + "the next command starts the daemon with what was saved\n";
}

}  // namespace

int run_repair(const std::string& state_dir, bool json) {
  const WallTime now = seam::system_clock().wall();
  const Result<store::Repaired> done =
      store::repair(state_dir, stamp(now), {now.ms, highest_job_in(state_dir)});
  if (!done) {
    Error error = done.error();
    if (error.code == ErrorCode::kBusy) error.hint = "mete daemon stop";
    return tell_failure(error, json, base::exit_code_of_failure(error.code));
  }
  (void)std::fputs((json ? document(*done, now) : lines(*done)).c_str(), stdout);
  return 0;
}

}  // namespace mete::daemon
