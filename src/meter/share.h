// SPDX-License-Identifier: Apache-2.0
// Memory that passes between processes. It is charged once, to the process that allocated it, as
// long as anybody of the job holds it; what comes from outside the job is charged in full to
// whoever opens it.
#pragma once

#include <cstdint>

#include "meter/state.h"

namespace mete::meter {

// How an export is found again by an importer: a hash of the handle's bytes, or of size and card
// for descriptors, which look all alike.
uint64_t bytes_key(const void* handle, size_t bytes);
uint64_t descriptor_key(int card, uint64_t units);

// This process gives the memory behind `name` (a pointer or a VMM handle) to others.
void note_export(uint64_t name, int card, uint64_t units, uint64_t key);

// This process lets go of memory that it may have exported. Returns the units to give back now: 0
// while somebody else still holds it open (they come back through collect_exports()).
uint64_t keep_if_exported(uint64_t name, int card, uint64_t units);

// Gives back what was kept for others and is held by nobody any more. True if anything came back.
bool collect_exports();

// This process opened memory under `name`. Charges it if it is not this job's own. False: no room
// for it.
bool note_import(uint64_t name, int card, uint64_t units, uint64_t key);
void drop_import(uint64_t name);

}  // namespace mete::meter
