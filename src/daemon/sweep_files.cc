// SPDX-License-Identifier: Apache-2.0
// See sweep_files.h. begin() compares the file with what it should hold, once for each sweep and
// daemon; from then on append() knows how many rows and bytes it has. When a metric appears for the
// first time, the columns change and the file is written anew.
#include "daemon/sweep_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "launch/identity.h"
#include "sweep/results_csv.h"
#include "wire/sweep.h"

namespace mete::daemon {

namespace {

constexpr std::size_t kMostRows = 2'000;        // in one call
constexpr std::size_t kMostFile = 64ull << 20;  // that is compared
constexpr mode_t kFolderMode = 0700;
constexpr mode_t kFileMode = 0600;

// All trials that are over, in the order in which they ended.
std::vector<const core::sweep::Trial*> results_of(const core::sweep::Sweep& sweep) {
  std::vector<const core::sweep::Trial*> results;
  for (const core::sweep::Trial& trial : sweep.trials())
    if (is_over(trial)) results.push_back(&trial);
  std::sort(results.begin(), results.end(),
            [](const auto* a, const auto* b) { return a->order < b->order; });
  return results;
}

std::vector<std::string> metrics_of(const core::sweep::Sweep& sweep) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const core::sweep::MetricRule& rule : sweep.plan().metrics) add(rule.name);
  if (sweep.plan().goal) add(sweep.plan().goal->metric);
  for (const std::string& name : sweep.metric_names()) add(name);
  return names;
}

std::string row_of(const core::sweep::Sweep& sweep, const core::sweep::Trial& trial,
                   const std::vector<std::string>& metrics) {
  return mete::sweep::csv_row(wire::view_of(sweep.plan(), trial), sweep.plan().space.names(),
                              metrics);
}

Result<void> write_at(const std::string& path, std::uint64_t at, const std::string& text) {
  const Fd file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, kFileMode));
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0) return Error::from_errno("open " + path, errno);
  if (!S_ISREG(info.st_mode)) return Error::io(path + " is no regular file");
  if (static_cast<std::uint64_t>(info.st_size) != at)
    return Error::corrupt(path + " was changed by another program");
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote =
        pwrite(file.get(), text.data() + done, text.size() - done, static_cast<off_t>(at + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      const int error = errno;
      (void)!ftruncate(file.get(), static_cast<off_t>(at));  // no part of a row stays
      return Error::from_errno("write " + path, error);
    }
    done += static_cast<std::size_t>(wrote);
  }
  return {};
}

// Keeps a file that is not ours any more: results.csv.1, .2, …
Result<std::string> put_aside(const std::string& path) {
  for (int i = 1; i < 1000; ++i) {
    const std::string aside = path + "." + std::to_string(i);
    struct stat info {};
    if (lstat(aside.c_str(), &info) == 0) continue;
    if (rename(path.c_str(), aside.c_str()) == 0) return aside;
    return Error::from_errno("rename " + path, errno);
  }
  return Error::exhausted("there are 999 old copies of " + path);
}

}  // namespace

void SweepFiles::write(const core::Sweeps& sweeps) {
  std::erase_if(files_, [&](const auto& known) { return sweeps.find(known.first) == nullptr; });
  // Of the sweeps that ended before this daemon began, one in each call: comparing may take a
  // while, and may fail each time.
  std::optional<std::uint64_t> first_old, next_old;
  for (const auto& [number, sweep] : sweeps.all()) {
    File& file = files_[number];
    if (file.checked && file.rows == sweep.results()) continue;
    if (file.checked || !sweep.ended() || *sweep.ended() >= begun_) {
      try_to_write(sweep, file);
      continue;
    }
    if (!first_old) first_old = number;
    if (!next_old && number > compared_) next_old = number;
  }
  if (!first_old) return;
  compared_ = next_old.value_or(*first_old);
  try_to_write(*sweeps.find(compared_), files_[compared_]);
}

void SweepFiles::write_ended(const core::Sweeps& sweeps) {
  for (const auto& [number, sweep] : sweeps.all()) {
    if (!sweep.ended() || *sweep.ended() < begun_) continue;
    File& file = files_[number];
    if (std::exchange(file.ended, sweep.ended()) == sweep.ended()) continue;
    try_to_write(sweep, file);
  }
}

void SweepFiles::try_to_write(const core::sweep::Sweep& sweep, File& file) {
  const core::JobSpec& job = sweep.plan().job;
  launch::Identity owner;
  if (as_user_ && job.detached) owner = {job.uid, job.detached->gid, job.detached->groups};
  const Result<launch::RightsOf> rights = launch::RightsOf::take(owner);
  const Result<void> written = rights ? write_one(sweep, file) : Result<void>(rights.error());
  const std::string trouble = written ? "" : written.error().message;
  if (!trouble.empty() && trouble != file.trouble)
    log_("results of sweep " + sweep.plan().name + " are not written: " + trouble);
  file.trouble = trouble;
}

Result<void> SweepFiles::write_one(const core::sweep::Sweep& sweep, File& file) {
  const std::string folder =
      base::join_path(folder_of_(sweep.plan().job.uid), "sweeps/" + sweep.plan().name);
  const std::string path = base::join_path(folder, "results.csv");
  if (std::vector<std::string> metrics = metrics_of(sweep); metrics != file.metrics) {
    if (file.checked) (void)unlink(path.c_str());  // other columns
    file.metrics = std::move(metrics);
    file.checked = false;
  }
  if (!file.checked)
    if (Result<void> r = begin(sweep, file, folder); !r) return r;
  Result<void> appended = append(sweep, file, path);
  if (!appended && appended.error().code == ErrorCode::kCorrupt) file.checked = false;
  return appended;
}

Result<void> SweepFiles::begin(const core::sweep::Sweep& sweep, File& file,
                               const std::string& folder) {
  if (Result<void> r = base::make_directories(folder, kFolderMode); !r) return r;
  const std::string path = base::join_path(folder, "results.csv");
  const std::string header = mete::sweep::csv_header(sweep.plan().space.names(), file.metrics);
  const Result<std::string> there = base::read_regular(path, kMostFile);
  file.rows = 0;
  file.bytes = 0;
  if (there && there->starts_with(header)) {
    file.bytes = header.size();
    for (const core::sweep::Trial* trial : results_of(sweep)) {
      const std::string row = row_of(sweep, *trial, file.metrics);
      if (there->compare(file.bytes, row.size(), row) != 0) break;
      file.bytes += row.size();
      ++file.rows;
    }
  }
  struct stat info {};
  const bool odd = !there && lstat(path.c_str(), &info) == 0;  // a link, a pipe, too large
  if (odd || (there && !there->empty() && there->size() != file.bytes)) {
    const Result<std::string> aside = put_aside(path);
    if (!aside) return aside.error();
    log_("sweep " + sweep.plan().name + ": results.csv was changed; it is " + *aside +
         " now, and written anew");
    file.rows = file.bytes = 0;
  }
  if (file.bytes == 0) {
    if (Result<void> r = write_at(path, 0, header); !r) return r;
    file.bytes = header.size();
  }
  file.checked = true;
  return {};
}

Result<void> SweepFiles::append(const core::sweep::Sweep& sweep, File& file,
                                const std::string& path) {
  const std::vector<const core::sweep::Trial*> results = results_of(sweep);
  const std::uint64_t until = std::min<std::uint64_t>(results.size(), file.rows + kMostRows);
  std::string text;
  for (std::uint64_t i = file.rows; i < until; ++i)
    text += row_of(sweep, *results[i], file.metrics);
  if (text.empty()) return {};
  if (Result<void> r = write_at(path, file.bytes, text); !r) return r;
  file.rows = until;
  file.bytes += text.size();
  return {};
}

}  // namespace mete::daemon
