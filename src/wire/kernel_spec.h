// SPDX-License-Identifier: Apache-2.0
// kernel.json, the file by which Jupyter knows a kernel. `mete kernel install` writes it; the
// object "mete" in its metadata says that it did (docs/formats/kernel-spec.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mete::wire {

struct KernelSpec {
  // What mete was asked for.
  struct Mete {
    std::string gpu;   // as --gpu; "": none was given (--devices)
    std::string idle;  // as --idle; "": left to the configuration
    std::string python;
    bool operator==(const Mete&) const = default;
  };

  std::vector<std::string> argv;
  std::string display_name;
  std::optional<Mete> mete;  // absent: not a kernel of mete
  bool operator==(const KernelSpec&) const = default;
};

// Lines of indented JSON, as Jupyter writes it.
std::string encode(const KernelSpec& spec);
// Fields that we do not know are ignored: most files are others'.
Result<KernelSpec> decode_kernel_spec(std::string_view json);

}  // namespace mete::wire
