// SPDX-License-Identifier: Apache-2.0
// Where Jupyter looks for kernels, and which of them are mete's. A kernel is a folder with a
// kernel.json in it; the folder's name is the kernel's name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/kernel_spec.h"

namespace mete::cli {

struct KernelFile {
  std::string name;    // of the folder
  std::string folder;  // its path
  wire::KernelSpec spec;
};

// "python-8-gib" for "Python (8 GiB)": letters, digits, '-', '_' and '.', as Jupyter wants a name;
// "" if nothing is left.
std::string kernel_name(std::string_view display_name);

// The folder "kernels" of a data folder of Jupyter.
std::string kernels_of_user();
std::string kernels_of_prefix(const std::string& prefix);
// All that Jupyter would look at, for a Python with this prefix ("": unknown), in its order.
std::vector<std::string> kernel_folders(const std::string& prefix);

// The kernels of mete in these folders, by name. What cannot be read is left out.
std::vector<KernelFile> find_kernels(const std::vector<std::string>& folders);

// Writes FOLDERS/NAME/kernel.json. invalid: there is another kernel of that name, and not
// `replace`; a kernel that is not mete's is never replaced.
Result<std::string> write_kernel(const std::string& folder, const std::string& name,
                                 const wire::KernelSpec& spec, bool replace);
// Removes kernel.json, and the folder if nothing else is in it.
Result<void> remove_kernel(const KernelFile& kernel);

}  // namespace mete::cli
