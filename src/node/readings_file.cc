// SPDX-License-Identifier: Apache-2.0
// See readings_file.h. The writer maps the file and updates it as a seqlock: sequence odd, body,
// sequence even. The reader copies sequence, file and sequence again with pread(2) and retries
// while the copy is torn; then it checks magic, version, bounds, boot and pid namespace before it
// uses any of it.
#include "node/readings_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "base/fd.h"
#include "base/file.h"
#include "node/proc.h"

namespace mete::node {

namespace {

constexpr int kTries = 100;  // a write takes microseconds

seam::UuidBytes this_boot() {
  const Result<std::string> text = read_boot_id();
  if (!text) return {};
  return seam::parse_uuid("GPU-" + *text).value_or(seam::UuidBytes{});
}

std::uint64_t own_namespace() {
  const Result<std::uint64_t> inode = read_pid_namespace(getpid());
  return inode ? *inode : 0;
}

void fill_card(const seam::CardReading& from, abi::ReadingsCard& to) {
  to = {};
  const seam::UuidBytes uuid = seam::parse_uuid(from.uuid).value_or(seam::UuidBytes{});
  std::copy(uuid.begin(), uuid.end(), to.uuid);
  to.index = from.index;
  if (from.state == seam::CardState::kLost) {
    to.flags = abi::ReadingsCard::kLost;
    return;
  }
  const auto put = [&](const std::optional<Bytes>& value, std::uint64_t& into, std::uint32_t flag) {
    if (!value) return;
    into = value->count();
    to.flags |= flag;
  };
  put(from.total, to.total_bytes, abi::ReadingsCard::kTotalKnown);
  put(from.free, to.free_bytes, abi::ReadingsCard::kFreeKnown);
  put(from.used, to.used_bytes, abi::ReadingsCard::kUsedKnown);
}

void fill_body(const std::vector<seam::CardReading>& cards, seam::Nanoseconds at,
               abi::ReadingsBody& body) {
  body.at_ns = static_cast<std::uint64_t>(at.count());
  body.card_count = 0;
  body.process_count = 0;
  for (const seam::CardReading& card : cards) {
    if (body.card_count == abi::kReadingsCards) break;
    const std::uint32_t position = body.card_count++;
    fill_card(card, body.cards[position]);
    if (card.state == seam::CardState::kLost || !card.processes ||
        card.processes->size() > abi::kReadingsProcesses - body.process_count)
      continue;
    body.cards[position].flags |= abi::ReadingsCard::kProcessesKnown;
    for (const seam::ProcessReading& process : *card.processes) {
      abi::ReadingsProcess& to = body.processes[body.process_count++];
      to.pid = static_cast<std::uint32_t>(process.pid);
      to.card = static_cast<std::uint16_t>(position);
      to.flags = process.used ? abi::ReadingsProcess::kUsedKnown : 0;
      to.used_bytes = process.used.value_or(Bytes{}).count();
    }
  }
}

seam::CardReading card_of(const abi::ReadingsCard& from) {
  seam::CardReading card;
  card.index = from.index;
  seam::UuidBytes uuid{};
  std::copy(std::begin(from.uuid), std::end(from.uuid), uuid.begin());
  card.uuid = seam::to_string(uuid);
  if ((from.flags & abi::ReadingsCard::kLost) != 0) card.state = seam::CardState::kLost;
  const auto get = [&](std::uint64_t value, std::uint32_t flag) {
    return (from.flags & flag) != 0 ? std::optional(Bytes::from_bytes(value)) : std::nullopt;
  };
  card.total = get(from.total_bytes, abi::ReadingsCard::kTotalKnown);
  card.free = get(from.free_bytes, abi::ReadingsCard::kFreeKnown);
  card.used = get(from.used_bytes, abi::ReadingsCard::kUsedKnown);
  if ((from.flags & abi::ReadingsCard::kProcessesKnown) != 0) card.processes.emplace();
  return card;
}

// The words of a file as plain bytes: an atomic cannot be copied.
struct Raw {
  alignas(8) char bytes[sizeof(abi::Readings)];
  const abi::Readings& file() const { return *reinterpret_cast<const abi::Readings*>(bytes); }
};

// One try. False: torn.
Result<bool> read_once(int fd, Raw& raw) {
  constexpr std::size_t kSequence = offsetof(abi::Readings, sequence);
  std::uint64_t before = 0, after = 0;
  const Error cut = Error::corrupt("the readings file is cut short");
  if (!base::read_at(fd, &before, sizeof before, kSequence)) return cut;
  // The kernel copies with ordinary loads: the fences keep the three copies in this order.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (!base::read_at(fd, raw.bytes, sizeof raw.bytes, 0)) return cut;
  std::atomic_thread_fence(std::memory_order_acquire);
  if (!base::read_at(fd, &after, sizeof after, kSequence)) return cut;
  return before == after && before % 2 == 0;
}

}  // namespace

Result<ReadingsWriter> ReadingsWriter::make(const std::string& path) {
  const std::string fresh = path + "." + std::to_string(getpid()) + ".new";
  (void)unlink(fresh.c_str());  // of a helper that had our pid and was killed here
  const Fd fd(open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return Error::from_errno("make " + fresh, errno);
  const auto fail = [&](const char* what, int error) {
    (void)unlink(fresh.c_str());
    return Error::from_errno(std::string(what) + " " + fresh, error);
  };
  // Allocated, not only extended: a disk that fills up must not kill the helper by SIGBUS.
  if (const int error = posix_fallocate(fd.get(), 0, sizeof(abi::Readings)); error != 0)
    return fail("allocate", error);
  if (fchmod(fd.get(), 0644) != 0) return fail("open up", errno);
  void* memory =
      mmap(nullptr, sizeof(abi::Readings), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return fail("map", errno);
  auto* file = new (memory) abi::Readings;  // zeros by the file system
  std::copy(std::begin(abi::kReadingsMagic), std::end(abi::kReadingsMagic), file->magic);
  file->major = abi::kReadingsMajor;
  file->minor = abi::kReadingsMinor;
  file->file_bytes = sizeof(abi::Readings);
  const seam::UuidBytes boot = this_boot();
  std::copy(boot.begin(), boot.end(), file->boot_id);
  file->pid_namespace = own_namespace();
  file->sequence.store(0);
  ReadingsWriter writer(file);
  if (rename(fresh.c_str(), path.c_str()) != 0) return fail("rename", errno);
  return writer;
}

ReadingsWriter::ReadingsWriter(ReadingsWriter&& other) noexcept
    : file_(std::exchange(other.file_, nullptr)) {}

ReadingsWriter::~ReadingsWriter() {
  if (file_ != nullptr) (void)munmap(file_, sizeof(abi::Readings));
}

void ReadingsWriter::publish(const std::vector<seam::CardReading>& cards, seam::Nanoseconds at) {
  const std::uint64_t sequence = file_->sequence.load(std::memory_order_relaxed);
  file_->sequence.store(sequence + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  fill_body(cards, at, file_->body);
  file_->sequence.store(sequence + 2, std::memory_order_release);
}

Result<Sample> parse_readings(std::string_view bytes) {
  if (bytes.size() < sizeof(abi::Readings)) return Error::corrupt("the readings file is truncated");
  const auto raw = std::make_unique<Raw>();
  std::memcpy(raw->bytes, bytes.data(), sizeof raw->bytes);
  const abi::Readings& file = raw->file();
  if (!std::equal(std::begin(abi::kReadingsMagic), std::end(abi::kReadingsMagic), file.magic))
    return Error::corrupt("not a readings file");
  if (file.major != abi::kReadingsMajor)
    return Error::unsupported("the readings file is of another version");
  const abi::ReadingsBody& body = file.body;
  if (file.file_bytes < sizeof(abi::Readings) || body.card_count > abi::kReadingsCards ||
      body.process_count > abi::kReadingsProcesses || body.at_ns > INT64_MAX)
    return Error::corrupt("the readings file has impossible numbers");
  if (body.at_ns == 0) return Error::busy("nothing was read yet");
  std::vector<seam::CardReading> cards;
  for (std::uint32_t i = 0; i < body.card_count; ++i) cards.push_back(card_of(body.cards[i]));
  for (std::uint32_t i = 0; i < body.process_count; ++i) {
    const abi::ReadingsProcess& process = body.processes[i];
    if (process.card >= cards.size() || !cards[process.card].processes || process.pid == 0 ||
        process.pid > INT32_MAX)
      return Error::corrupt("the readings file has an impossible process");
    const bool known = (process.flags & abi::ReadingsProcess::kUsedKnown) != 0;
    cards[process.card].processes->push_back(
        {static_cast<pid_t>(process.pid),
         known ? std::optional(Bytes::from_bytes(process.used_bytes)) : std::nullopt, false});
  }
  return make_sample(cards, seam::Nanoseconds(static_cast<std::int64_t>(body.at_ns)));
}

Result<Sample> read_readings(const std::string& path) {
  // O_NONBLOCK: a FIFO in its place must not block us.
  const Result<Fd> fd = base::open_fd(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd) return fd.error();
  struct stat info {};
  if (fstat(fd->get(), &info) != 0) return Error::from_errno("look at " + path, errno);
  if (!S_ISREG(info.st_mode)) return Error::corrupt(path + " is not a file");
  if (info.st_uid != 0 && info.st_uid != geteuid())
    return Error::denied(path + " belongs to another user");
  const auto raw = std::make_unique<Raw>();
  for (int i = 0; i < kTries; ++i) {
    const Result<bool> whole = read_once(fd->get(), *raw);
    if (!whole) return whole.error();
    if (!*whole) continue;
    Result<Sample> sample = parse_readings({raw->bytes, sizeof raw->bytes});
    if (!sample) return sample;
    const seam::UuidBytes boot = this_boot();
    if (!std::equal(boot.begin(), boot.end(), raw->file().boot_id))
      return Error::unsupported(path + " is from another boot");
    // Pids are valid in their own namespace only.
    if (raw->file().pid_namespace != own_namespace())
      return Error::unsupported(path + " was written in another pid namespace");
    return sample;
  }
  return Error::busy(path + " is being written");
}

}  // namespace mete::node
