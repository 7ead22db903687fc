// SPDX-License-Identifier: Apache-2.0
// See meter_check.h. Reads the ELF header, the program headers and the notes, and maps a page for
// execution as the loader will do. Every size and offset is checked against the size of the file.
// The note of the meter must name a version of grant files that this program writes;
// docs/formats/meter-note.md.
#include "launch/meter_check.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "abi/meter_note.h"
#include "base/fd.h"

namespace mete::launch {

namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#else
#error "the meter is not built for this machine"
#endif

constexpr std::size_t kMaxSegments = 64;
constexpr std::uint64_t kMaxNotes = 64 << 10;

Error cannot(const std::string& path, const std::string& why) {
  return Error::busy("the program would run without its cap, and is not started")
      .with_evidence(path + ": " + why)
      .with_hint("install all of mete again; mete doctor looks at the installation");
}

Error cannot(const std::string& path, const Error& error) {
  // "open /lib/libmete.so: No such file or directory": drops the path, which the message has
  // already.
  const std::size_t colon = error.message.rfind(": ");
  return cannot(path, colon == std::string::npos ? error.message : error.message.substr(colon + 2));
}

struct Library {
  std::uint64_t size = 0;
  std::vector<Elf64_Phdr> segments;
};

bool is_ours(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
         header.e_type == ET_DYN && header.e_machine == kMachine;
}

Result<Library> read_library(int file, const std::string& path) {
  struct stat info {};
  if (fstat(file, &info) != 0) return cannot(path, Error::from_errno(path, errno));
  if (!S_ISREG(info.st_mode)) return cannot(path, "it is not a file");
  Library library;
  library.size = static_cast<std::uint64_t>(info.st_size);
  Elf64_Ehdr header{};
  if (!base::read_at(file, &header, sizeof header, 0) || !is_ours(header))
    return cannot(path, "it is not a library for this machine");
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 ||
      header.e_phnum > kMaxSegments)
    return cannot(path, "it is damaged");
  library.segments.resize(header.e_phnum);
  if (!base::read_at(file, library.segments.data(), library.segments.size() * sizeof(Elf64_Phdr),
                     header.e_phoff))
    return cannot(path, "it is cut off");
  bool code = false;
  for (const Elf64_Phdr& segment : library.segments) {
    if (segment.p_type != PT_LOAD) continue;
    code = code || (segment.p_flags & PF_X) != 0;
    if (segment.p_offset > library.size || segment.p_filesz > library.size - segment.p_offset)
      return cannot(path, "it is truncated");
  }
  // The loader will map it like this; a file system that is mounted noexec refuses.
  void* const page =
      mmap(nullptr, 1, code ? PROT_READ | PROT_EXEC : PROT_READ, MAP_PRIVATE, file, 0);
  if (page == MAP_FAILED)
    return cannot(path, "it cannot be mapped for execution (is its file system mounted noexec?)");
  (void)munmap(page, 1);
  return library;
}

// Sizes in a note are rounded up to the alignment of its segment.
std::size_t padded(std::size_t bytes, std::size_t align) {
  return (bytes + align - 1) / align * align;
}

std::optional<abi::MeterNote> note_among(const std::string& notes, std::size_t align) {
  for (std::size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
    Elf64_Nhdr header{};
    std::memcpy(&header, notes.data() + at, sizeof header);
    const std::size_t name = at + sizeof header;
    const std::size_t content = name + padded(header.n_namesz, align);
    const std::size_t end = content + padded(header.n_descsz, align);
    if (content > notes.size() || content + header.n_descsz > notes.size()) break;
    if (header.n_type == abi::kMeterNoteType && header.n_namesz == sizeof abi::kMeterNoteName &&
        header.n_descsz >= sizeof(abi::MeterNote) &&
        std::memcmp(notes.data() + name, abi::kMeterNoteName, sizeof abi::kMeterNoteName) == 0) {
      abi::MeterNote note;
      std::memcpy(&note, notes.data() + content, sizeof note);
      return note;
    }
    at = end;
  }
  return std::nullopt;
}

std::optional<abi::MeterNote> find_note(int file, const Library& library) {
  for (const Elf64_Phdr& segment : library.segments) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNotes) continue;
    std::string notes(segment.p_filesz, '\0');
    if (!base::read_at(file, notes.data(), notes.size(), segment.p_offset)) continue;
    if (auto note = note_among(notes, segment.p_align == 8 ? 8 : 4)) return note;
  }
  return std::nullopt;
}

Result<void> check_library(const std::string& path, bool meter) {
  // Separators of LD_PRELOAD, and what the loader expands in it; there is no quoting.
  if (path.find_first_of(" :$") != std::string::npos)
    return cannot(path, "LD_PRELOAD cannot hold a path with a space, a colon or a $");
  if (path.empty() || path.front() != '/') return cannot(path, "it has no absolute path");
  const Result<Fd> file = base::open_fd(path, O_RDONLY | O_NONBLOCK);
  if (!file) return cannot(path, file.error());
  const Result<Library> library = read_library(file->get(), path);
  if (!library) return library.error();
  if (!meter) return {};
  const std::optional<abi::MeterNote> note = find_note(file->get(), *library);
  if (!note) return cannot(path, "it is not mete's meter, or a very old one");
  if (note->grant_major != abi::kGrantMajor)
    return cannot(path, "it reads grant files of version " + std::to_string(note->grant_major) +
                            ", and this program writes version " +
                            std::to_string(abi::kGrantMajor));
  return {};
}

}  // namespace

Result<void> check_meter(const std::vector<std::string>& preload) {
  if (preload.empty()) return cannot("libmete.so", "its path is not known");
  for (const std::string& path : preload)
    if (Result<void> r = check_library(path, &path == &preload.front()); !r) return r;
  return {};
}

}  // namespace mete::launch
