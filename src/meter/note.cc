// SPDX-License-Identifier: Apache-2.0
// What this library is, for a launcher that reads the file without loading it (abi/meter_note.h).
// Written in assembler: a C++ object cannot be in a section of type note.
#include "abi/meter_note.h"

#define METE_TEXT_OF(value) #value
#define METE_TEXT(value) METE_TEXT_OF(value)

asm(".pushsection .note.mete, \"a\", %note\n"
    ".balign 4\n"
    ".long 5\n"  // bytes of the name, with its zero
    ".long 4\n"  // bytes of the content
    ".long 1\n"  // kMeterNoteType
    ".asciz \"mete\"\n"
    ".balign 4\n"
    ".short " METE_TEXT(METE_NOTE_GRANT_MAJOR) "\n"
    ".short " METE_TEXT(METE_NOTE_GRANT_MINOR) "\n"
    ".popsection\n");
