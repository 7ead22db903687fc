// SPDX-License-Identifier: Apache-2.0
// The note in libmete.so by which a launcher recognises the meter, and the version of grant files
// that it understands, without loading it. An ordinary ELF note in a PT_NOTE segment; every byte is
// described in docs/formats/meter-note.md.
#pragma once

#include <cstdint>

#include "abi/grant.h"

namespace mete::abi {

inline constexpr char kMeterNoteName[5] = "mete";
inline constexpr uint32_t kMeterNoteType = 1;

// Later versions are longer: a reader takes the part that it knows, from the beginning.
struct MeterNote {
  uint16_t grant_major = 0;
  uint16_t grant_minor = 0;
};
static_assert(sizeof(MeterNote) == 4);

// For the assembler, which cannot read constants of C++.
#define METE_NOTE_GRANT_MAJOR 1
#define METE_NOTE_GRANT_MINOR 3
static_assert(METE_NOTE_GRANT_MAJOR == kGrantMajor && METE_NOTE_GRANT_MINOR == kGrantMinor);

}  // namespace mete::abi
