// SPDX-License-Identifier: Apache-2.0
// The smallest file that check_meter() takes for the meter: a header, one segment to load, one with
// the note.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "abi/meter_note.h"

namespace mete::launch {

#if defined(__x86_64__)
inline constexpr std::uint16_t kMachine = EM_X86_64;
#else
inline constexpr std::uint16_t kMachine = EM_AARCH64;
#endif

struct SmallLibrary {
  SmallLibrary() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
    header.e_machine = kMachine;
    header.e_phoff = offsetof(SmallLibrary, load);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    load.p_type = PT_LOAD;
    load.p_flags = PF_R | PF_X;
    load.p_filesz = sizeof(SmallLibrary);
    notes.p_type = PT_NOTE;
    notes.p_offset = offsetof(SmallLibrary, first);
    notes.p_filesz = sizeof(SmallLibrary) - offsetof(SmallLibrary, first);
    notes.p_align = 4;
  }

  Elf64_Ehdr header{};
  Elf64_Phdr load{};
  Elf64_Phdr notes{};
  Elf64_Nhdr first{4, 8, NT_GNU_BUILD_ID};  // the meter's is not the only one
  char first_name[4] = "GNU";
  char first_content[8] = {};
  Elf64_Nhdr ours{5, 4, abi::kMeterNoteType};
  char name[8] = "mete";
  abi::MeterNote note{abi::kGrantMajor, abi::kGrantMinor};
};

}  // namespace mete::launch
