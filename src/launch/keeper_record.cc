// SPDX-License-Identifier: Apache-2.0
// See keeper_record.h. The file has areas of whole sectors: claim, launch, program, exit. Each area
// is text with a checksum in its last line, so a write in place is either whole or recognised as
// torn. A claim is written to a draft, then put in place by link(), which never replaces a file.
#include "launch/keeper_record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "abi/grant.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"

namespace mete::launch {

namespace {

struct Area {
  std::size_t begin;
  std::size_t end;
};
constexpr Area kClaim{0, 512};
constexpr Area kLaunch{512, 1536};
constexpr Area kProgram{1536, 2048};
constexpr Area kExit{2048, kRecordBytes};
constexpr std::string_view kFirstLine = "mete-keeper 1";
constexpr std::size_t kLastLine = 20;  // "end", 16 digits, a newline
constexpr std::size_t kLongest = kExit.end - kExit.begin;
static_assert(kMaxExitText + kLastLine + 6 <= kLongest);
static_assert(kMaxGroups * (kMaxGroupPath + 7) + 7 + kLastLine <= kLaunch.end - kLaunch.begin);

std::string last_line(std::string_view before) {
  std::uint64_t sum = abi::fnv1a(before.data(), before.size());
  std::string line = "end0000000000000000\n";
  for (std::size_t i = 18; i > 2; --i, sum >>= 4) line[i] = "0123456789abcdef"[sum & 15];
  return line;
}

// The lines of an area, without the last one.
struct Content {
  enum class Kind { kEmpty, kWhole, kTorn } kind = Kind::kEmpty;
  std::vector<std::string_view> lines = {};
};
Content read_area(std::string_view record, Area area) {
  const std::string_view bytes = record.substr(area.begin, area.end - area.begin);
  const std::size_t length = std::min(bytes.find('\0'), bytes.size());
  if (bytes.find_first_not_of('\0') == std::string_view::npos) return {};
  if (bytes.find_first_not_of('\0', length) != std::string_view::npos || length < kLastLine)
    return {Content::Kind::kTorn};
  const std::string_view body = bytes.substr(0, length - kLastLine);
  if (!body.ends_with('\n') || bytes.substr(body.size(), kLastLine) != last_line(body))
    return {Content::Kind::kTorn};
  return {Content::Kind::kWhole, base::split(body.substr(0, body.size() - 1), '\n')};
}

// Canonical numbers only: reading and writing again gives equal bytes.
std::optional<std::uint64_t> number(std::string_view text, std::uint64_t most) {
  const Result<std::uint64_t> value = base::parse_uint(text);
  if (!value || *value > most || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  return *value;
}

std::optional<core::JobId> job_id(std::string_view text) {
  const Result<core::JobId> id = core::parse_job_id(text);
  if (!id || core::to_string(*id) != text) return std::nullopt;
  return *id;
}

std::optional<core::ProcessRef> process(std::string_view pid, std::string_view start) {
  const std::optional<std::uint64_t> number_of = number(pid, INT32_MAX);
  const std::optional<std::uint64_t> ticks = number(start, UINT64_MAX);
  if (!number_of || *number_of == 0 || !ticks) return std::nullopt;
  return core::ProcessRef{static_cast<std::int32_t>(*number_of), *ticks};
}

std::string words(const core::ProcessRef& process) {
  return std::to_string(process.pid) + " " + std::to_string(process.start_ticks);
}

// The fields of a line after its first one, if that is `key` and there are `count` of them.
std::vector<std::string_view> values(std::string_view line, std::string_view key,
                                     std::size_t count) {
  std::vector<std::string_view> all = base::split(line, ' ');
  if (all.size() != count + 1 || all.front() != key) return {};
  all.erase(all.begin());
  return all;
}

std::string boot_text(const seam::UuidBytes& boot) { return seam::to_string(boot).substr(4); }

std::string claim_text(const Claim& claim) {
  return std::string(kFirstLine) + "\nclaim " + core::to_string(claim.job) + " " +
         std::to_string(claim.attempt) + "\nboot " + boot_text(claim.boot) + "\nkeeper " +
         words(claim.keeper) + "\n";
}

std::optional<Claim> parse_claim(const Content& content) {
  if (content.kind != Content::Kind::kWhole || content.lines.size() != 4 ||
      content.lines[0] != kFirstLine)
    return std::nullopt;
  const std::vector<std::string_view> claimed = values(content.lines[1], "claim", 2);
  const std::vector<std::string_view> boot = values(content.lines[2], "boot", 1);
  const std::vector<std::string_view> keeper = values(content.lines[3], "keeper", 2);
  if (claimed.empty() || boot.empty() || keeper.empty()) return std::nullopt;
  const std::optional<core::JobId> job = job_id(claimed[0]);
  const std::optional<std::uint64_t> attempt = number(claimed[1], UINT32_MAX);
  const std::optional<seam::UuidBytes> id = seam::parse_uuid("GPU-" + std::string(boot[0]));
  const std::optional<core::ProcessRef> process_of = process(keeper[0], keeper[1]);
  if (!job || !attempt || !id || boot_text(*id) != boot[0] || !process_of) return std::nullopt;
  return Claim{*job, static_cast<std::uint32_t>(*attempt), *id, *process_of};
}

bool is_group(std::string_view path) {
  return path.starts_with('/') && path.size() <= kMaxGroupPath &&
         path.find('\n') == std::string_view::npos && path.find('\0') == std::string_view::npos;
}

std::vector<std::string> parse_groups(const Content& content) {
  std::vector<std::string> groups;
  if (content.kind != Content::Kind::kWhole || content.lines[0] != "launch") return groups;
  // Unknown lines are from a newer keeper.
  for (const std::string_view line : content.lines)
    if (line.starts_with("group ") && is_group(line.substr(6)) && groups.size() < kMaxGroups)
      groups.emplace_back(line.substr(6));
  return groups;
}

std::optional<RunningProgram> parse_program(const Content& content) {
  if (content.kind != Content::Kind::kWhole || content.lines.size() != 1) return std::nullopt;
  const std::vector<std::string_view> all = values(content.lines[0], "program", 3);
  if (all.empty()) return std::nullopt;
  const std::optional<core::ProcessRef> program = process(all[0], all[1]);
  const std::optional<std::uint64_t> since = number(all[2], INT64_MAX);
  if (!program || !since) return std::nullopt;
  return RunningProgram{*program, seam::Nanoseconds(static_cast<std::int64_t>(*since))};
}

Result<void> write_whole(int file, std::string_view bytes, std::size_t at,
                         const std::string& path) {
  if (base::write_at(file, bytes, at)) return {};
  return Error::from_errno("write " + path, errno);
}

// Zeros behind the text: the old content is gone, and the block is allocated.
std::string filled(const std::string& text, std::size_t size) {
  std::string bytes = text + last_line(text);
  METE_ASSERT(bytes.size() <= size);
  bytes.resize(size, '\0');
  return bytes;
}

Result<Fd> make_whole_file(const std::string& path, const std::string& bytes) {
  (void)unlink(path.c_str());  // of a killed keeper that had our pid
  Result<Fd> file = base::open_fd(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!file) return file;
  if (Result<void> written = write_whole(file->get(), bytes, 0, path); !written) {
    (void)unlink(path.c_str());
    return std::move(written).error();
  }
  return file;
}

}  // namespace

std::string to_string(const RecordName& name) {
  return core::to_string(name.job) + "." + std::to_string(name.attempt);
}

std::optional<RecordName> parse_record_name(std::string_view name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::optional<core::JobId> job = job_id(name.substr(0, dot));
  const std::optional<std::uint64_t> attempt = number(name.substr(dot + 1), UINT32_MAX);
  if (!job || !attempt) return std::nullopt;
  return RecordName{*job, static_cast<std::uint32_t>(*attempt)};
}

Result<Record> parse_record(std::string_view bytes) {
  if (bytes.size() != kRecordBytes) return Error::corrupt("a keeper's record has 4096 bytes");
  const std::optional<Claim> claim = parse_claim(read_area(bytes, kClaim));
  if (!claim) return Error::corrupt("there is no whole claim in the keeper's record");
  const Content launch = read_area(bytes, kLaunch);
  const Content program = read_area(bytes, kProgram);
  const Content exit = read_area(bytes, kExit);
  Record record{*claim};
  for (const Content* content : {&launch, &program, &exit})
    record.launched = record.launched || content->kind != Content::Kind::kEmpty;
  record.groups = parse_groups(launch);
  record.program = parse_program(program);
  if (exit.kind == Content::Kind::kWhole && exit.lines.size() == 2 && exit.lines[0] == "exit")
    record.exit = std::string(exit.lines[1]);
  return record;
}

Result<Record> read_record(const std::string& path) {
  const Result<Fd> file = base::open_fd(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file) return file.error();
  std::string bytes(kRecordBytes + 1, '\0');  // one more: a longer file is not a record
  const ssize_t got = pread(file->get(), bytes.data(), bytes.size(), 0);
  if (got < 0) return Error::from_errno("read " + path, errno);
  bytes.resize(static_cast<std::size_t>(got));
  Result<Record> record = parse_record(bytes);
  if (!record) return std::move(record).error().within(path);
  return record;
}

Result<KeeperRecord> KeeperRecord::claim(const std::string& folder, const Claim& claim) {
  const std::string name = to_string(RecordName{claim.job, claim.attempt});
  const std::string path = base::join_path(folder, name);
  std::string bytes = filled(claim_text(claim), kClaim.end - kClaim.begin);
  bytes.resize(kRecordBytes, '\0');
  // Written completely under a draft name that no reader looks at, then put in place by link(),
  // which never replaces: no reader ever sees half a claim. Synced when it is in place, since a
  // file with its name is one commit of the file system's journal and not two.
  const std::string draft =
      base::join_path(folder, "." + name + "." + std::to_string(claim.keeper.pid));
  Result<Fd> file = make_whole_file(draft, bytes);
  // Busy would mean that another keeper has the claim.
  if (!file && file.error().code == ErrorCode::kBusy)
    return Error::io(std::move(file).error().message);
  if (!file) return std::move(file).error();
  const int linked = link(draft.c_str(), path.c_str());
  const int error = errno;
  (void)unlink(draft.c_str());
  if (linked != 0 && error == EEXIST)
    return Error::busy("attempt " + std::to_string(claim.attempt) + " of job " +
                       core::to_string(claim.job) + " has a keeper already");
  if (linked != 0) return Error::from_errno("claim " + path, error);
  KeeperRecord record(path, *std::move(file));
  Result<void> r = fsync(record.file_.get()) == 0 ? base::sync_folder(folder)
                                                  : Error::from_errno("sync " + path, errno);
  if (!r) {
    (void)record.withdraw();
    return std::move(r).error();
  }
  return record;
}

Result<void> KeeperRecord::withdraw() {
  if (Result<void> r = base::remove_file(path_); !r) return r;
  return base::sync_folder(base::parent_path(path_));
}

Result<void> KeeperRecord::write_area(std::size_t begin, std::size_t end, const std::string& text) {
  return write_whole(file_.get(), filled(text, end - begin), begin, path_);
}

Result<void> KeeperRecord::launching(const std::vector<std::string>& groups) {
  std::string text = "launch\n";
  std::size_t count = 0;
  for (const std::string& group : groups)
    if (is_group(group) && ++count <= kMaxGroups) text += "group " + group + "\n";
  return write_area(kLaunch.begin, kLaunch.end, text);
}

Result<void> KeeperRecord::running(const RunningProgram& program) {
  return write_area(
      kProgram.begin, kProgram.end,
      "program " + words(program.program) + " " + std::to_string(program.since.count()) + "\n");
}

Result<void> KeeperRecord::ended(std::string_view exit) {
  if (exit.size() > kMaxExitText || exit.find('\n') != std::string_view::npos ||
      exit.find('\0') != std::string_view::npos)
    return Error::invalid("the end of a job is one line of at most " +
                          std::to_string(kMaxExitText) + " bytes");
  if (Result<void> r = write_area(kExit.begin, kExit.end, "exit\n" + std::string(exit) + "\n"); !r)
    return r;
  if (fdatasync(file_.get()) != 0) return Error::from_errno("sync " + path_, errno);
  return {};
}

}  // namespace mete::launch
