// SPDX-License-Identifier: Apache-2.0
// Memory that passes between processes. It is charged once, to the process that allocated it, as
// long as a process of the job holds it. Memory from outside the job is charged in full to the
// process that opens it.
#pragma once

#include <cstdint>

#include "meter/state.h"

namespace mete::meter {

// The key by which an importer finds an export: a hash of the handle's bytes, or of size and card
// for descriptors, which all look alike.
uint64_t bytes_key(const void* handle, size_t bytes);
uint64_t descriptor_key(int card, uint64_t units);

// This process gives the memory behind `name` (a pointer or a VMM handle) to other processes.
void note_export(uint64_t name, int card, uint64_t units, uint64_t key);

// This process frees memory that it may have exported. Returns the units to give back now: 0 while
// another process still has it open (collect_exports() gives them back later).
uint64_t keep_if_exported(uint64_t name, int card, uint64_t units);

// Gives back freed exports that no process has open any more. True if anything came back.
bool collect_exports();

// This process opened memory under `name`. Charges it if it does not belong to this job. False: no
// room for it.
bool note_import(uint64_t name, int card, uint64_t units, uint64_t key);
void drop_import(uint64_t name);

}  // namespace mete::meter
