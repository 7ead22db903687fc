// SPDX-License-Identifier: Apache-2.0
// The cards of this machine as they look from outside a cap: one line each of tab-separated fields,
// index, UUID, PCI address, serial number, total and free bytes, name. A field that the driver does
// not report is empty.
#pragma once

namespace mete::selftest {

// `library` is the NVML to open, by name or path. Returns an exit code; errors go to stderr.
int print_cards(const char* library);

}  // namespace mete::selftest
