// SPDX-License-Identifier: Apache-2.0
// See job_ref.h.
#include "cli/job_ref.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "core/job/array.h"
#include "net/address_file.h"
#include "runner/daemon_client.h"

namespace mete::cli {

namespace {

constexpr std::size_t kMaxFile = 32 << 10;
constexpr std::size_t kKeptLines = 2 * (kMaxBack + 1);

Error not_a_job(std::string_view text) {
  return Error::invalid(base::quote(text) + " names no job")
      .with_hint("write 12, 12_3, 12_[1-3] or @ for the last; mete ps lists the jobs");
}

// "@", "@~2" or a number as ids have them: "012" may be anything but what mete has printed.
bool parse_number(std::string_view text, JobRef& ref) {
  if (text == "@") return true;
  const bool back = text.starts_with("@~");
  if (text.starts_with("0")) return false;
  const Result<std::uint64_t> number = base::parse_uint(back ? text.substr(2) : text);
  if (!number || (back ? *number > kMaxBack : *number == 0)) return false;
  if (back)
    ref.back = static_cast<std::uint32_t>(*number);
  else
    ref.number = *number;
  return true;
}

bool parse_elements(std::string_view text, JobRef& ref) {
  const bool several = text.size() > 2 && text.front() == '[' && text.back() == ']';
  if (several) text = text.substr(1, text.size() - 2);
  if (!several && (!base::parse_uint(text) || (text.size() > 1 && text.front() == '0')))
    return false;
  const Result<core::Array> array = core::parse_array(text);
  if (!array || array->at_once) return false;
  ref.elements = core::elements_of(*array);
  return true;
}

Result<std::string> path_of_last_jobs() {
  Result<runner::DaemonPlace> place = runner::daemon_place();
  if (!place) return std::move(place).error();
  return base::join_path(place->state_dir, "last-jobs");
}

// The lines of all daemons, oldest first.
Result<std::vector<std::string>> read_lines(const std::string& path) {
  Result<std::string> text = base::read_all(path, 4 * kMaxFile);
  if (!text) return std::move(text).error();
  std::vector<std::string> lines;
  for (const std::string_view line : base::split(*text, '\n'))
    if (!line.empty()) lines.emplace_back(line);
  return lines;
}

// Where the daemon at `socket` is and was: it had another path maybe when it got those jobs.
net::Address paths_of(const std::string& socket) {
  const Result<runner::DaemonPlace> place = runner::daemon_place();
  if (!place) return {socket, {}};
  Result<net::Address> address = net::read_address(place->state_dir);
  return address && address->was_at(socket) ? *std::move(address) : net::Address{socket, {}};
}

Result<std::uint64_t> last_job(std::uint32_t back, const std::string& socket) {
  const Result<std::string> path = path_of_last_jobs();
  if (!path) return path.error();
  const Result<std::vector<std::string>> lines = read_lines(*path);
  if (!lines && lines.error().code != ErrorCode::kNotFound) return lines.error();
  const net::Address paths = paths_of(socket);
  std::uint32_t seen = 0;
  for (std::size_t i = lines ? lines->size() : 0; i > 0; --i) {
    const std::string& line = (*lines)[i - 1];
    const std::size_t space = line.find(' ');
    if (space == std::string::npos || !paths.was_at(line.substr(space + 1))) continue;
    const Result<std::uint64_t> number = base::parse_uint(line.substr(0, space));
    if (number && seen++ == back) return *number;
  }
  return Error::not_found(seen == 0 ? "you have submitted no job yet"
                                    : "you have submitted no more than " + std::to_string(seen) +
                                          (seen == 1 ? " job" : " jobs") + " that @ knows of")
      .with_hint("mete ps -a lists the jobs");
}

// Two who do this at once lose a line of the other at worst: a convenience, not a ledger.
void cut(const std::string& path) {
  const Result<std::vector<std::string>> lines = read_lines(path);
  std::string kept;
  if (lines)
    for (std::size_t i = lines->size() - std::min(lines->size(), kKeptLines); i < lines->size();
         ++i)
      kept.append((*lines)[i]).append("\n");
  (void)base::write_atomic(path, kept);
}

}  // namespace

Result<JobRef> parse_job_ref(std::string_view text) {
  JobRef ref;
  const std::size_t bar = text.find('_');
  if (!parse_number(text.substr(0, bar), ref)) return not_a_job(text);
  if (bar != std::string_view::npos && !parse_elements(text.substr(bar + 1), ref))
    return not_a_job(text);
  return ref;
}

std::string to_string(const JobRef& ref) {
  std::string text = ref.number != 0 ? std::to_string(ref.number)
                     : ref.back != 0 ? "@~" + std::to_string(ref.back)
                                     : "@";
  if (ref.elements.empty()) return text;
  if (ref.elements.size() == 1) return text + "_" + std::to_string(ref.elements.front());
  std::vector<std::string> elements;
  for (const std::uint32_t element : ref.elements) elements.push_back(std::to_string(element));
  return text + "_[" + base::join(elements, ",") + "]";
}

Result<std::vector<core::JobId>> resolve(const JobRef& ref, const std::string& socket) {
  std::uint64_t number = ref.number;
  if (number == 0) {
    const Result<std::uint64_t> last = last_job(ref.back, socket);
    if (!last) return last.error();
    number = *last;
  }
  if (ref.elements.empty()) return std::vector{core::JobId{number}};
  std::vector<core::JobId> ids;
  for (const std::uint32_t element : ref.elements) ids.push_back({number, element});
  return ids;
}

Result<std::vector<core::JobId>> resolve_jobs(const std::vector<std::string>& words,
                                              const std::string& socket) {
  std::vector<core::JobId> all;
  std::set<core::JobId> seen;
  for (const std::string& word : words) {
    const Result<JobRef> ref = parse_job_ref(word);
    if (!ref) return ref.error();
    const Result<std::vector<core::JobId>> ids = resolve(*ref, socket);
    if (!ids) return ids.error();
    for (const core::JobId& id : *ids)
      if (seen.insert(id).second) all.push_back(id);
  }
  return all;
}

Result<void> remember_job(std::uint64_t number, const std::string& socket) {
  const Result<std::string> path = path_of_last_jobs();
  if (!path) return path.error();
  if (socket.find('\n') != std::string::npos) return Error::invalid("a socket of several lines");
  if (Result<void> made = base::make_directories(base::parent_path(*path)); !made) return made;
  const Fd file(open(path->c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  const std::string line = std::to_string(number) + " " + socket + "\n";
  // One write: lines of two terminals do not mix.
  if (!file || write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return Error::from_errno("write " + *path, errno);
  struct stat status {};
  if (fstat(file.get(), &status) == 0 && status.st_size > static_cast<off_t>(kMaxFile)) cut(*path);
  return {};
}

}  // namespace mete::cli
